#pragma once

// Changes of color that leave every pixel where it is, with the numbers of PIL's ImageEnhance and
// ImageOps. Images are grey or RGB. Of use inside data only.

#include "adjoin/core/rng.h"
#include "adjoin/data/image.h"

namespace adjoin::data {

// ImageEnhance: away from black, the mean grey, the grey image or the smoothed image; a factor of 1
// changes nothing, 0 gives what is moved away from.
void adjust_brightness(Image& image, double factor);
void adjust_contrast(Image& image, double factor);
void adjust_saturation(Image& image, double factor);  ///< a grey image stays as it is
void adjust_sharpness(Image& image, double factor);

// ImageOps, each channel for itself.
void auto_contrast(Image& image);
void equalize(Image& image);
void invert(Image& image);
void posterize(Image& image, int bits);       ///< keeps the upper `bits`, 8 and more keep all
void solarize(Image& image, int threshold);   ///< inverts what is not below
void solarize_add(Image& image, int addend);  ///< adds to what is below 128

/// Brightness, contrast and saturation, in any order, each by a factor from 1 - strength to
/// 1 + strength: torchvision's ColorJitter without hue.
void jitter_colors(Image& image, double strength, Rng& rng);

}  // namespace adjoin::data
