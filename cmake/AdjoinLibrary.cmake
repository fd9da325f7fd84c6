# adjoin_library(<folder> [TORCH] [TOGETHER] SOURCES ... HEADERS ... [PRIVATE_HEADERS ...] [DEPS ...])
# One static library per folder of src/adjoin, exported as adjoin::<folder>.
# TORCH: reuse the precompiled <adjoin/tensor/torch.h>; others reuse that of adjoin_core.
# TOGETHER: several files in one unit. PRIVATE_HEADERS are not installed.
function(adjoin_library folder)
  cmake_parse_arguments(PARSE_ARGV 1 arg "TORCH;TOGETHER" "" "SOURCES;HEADERS;PRIVATE_HEADERS;DEPS")
  set(target adjoin_${folder})
  add_library(${target} STATIC ${arg_SOURCES} ${arg_PRIVATE_HEADERS})
  add_library(adjoin::${folder} ALIAS ${target})
  target_sources(${target} PUBLIC FILE_SET HEADERS
    BASE_DIRS ${PROJECT_SOURCE_DIR}/src FILES ${arg_HEADERS})
  target_link_libraries(${target} PUBLIC ${arg_DEPS})
  set_target_properties(${target} PROPERTIES EXPORT_NAME ${folder}
    VERIFY_INTERFACE_HEADER_SETS ON)
  adjoin_compile_options(${target} ${arg_TORCH})
  if(arg_TOGETHER)  # files that are compiled four at a time, with one reading of LibTorch's headers
    set_target_properties(${target} PROPERTIES UNITY_BUILD ON UNITY_BUILD_BATCH_SIZE 4)
  endif()
  install(TARGETS ${target} EXPORT adjoinTargets FILE_SET HEADERS)
endfunction()

# adjoin_compile_options(<target> <reuse torch PCH>): what every target of ours is compiled with.
function(adjoin_compile_options target reuse_pch)
  target_compile_features(${target} PUBLIC cxx_std_20)
  target_compile_options(${target} PRIVATE -Wall -Wextra -Wshadow)
  if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
    # GCC 12 says false things about additions of strings.
    target_compile_options(${target} PRIVATE -Wno-array-bounds -Wno-restrict -Wno-stringop-overflow)
    if(CMAKE_CXX_COMPILER_VERSION VERSION_GREATER_EQUAL 13)  # and of functions that take names
      target_compile_options(${target} PRIVATE -Wno-dangling-reference)
    endif()
  endif()
  # Executables too: GCC drops a precompiled header that was made with other flags.
  set_target_properties(${target} PROPERTIES POSITION_INDEPENDENT_CODE OFF CXX_EXTENSIONS OFF)
  target_compile_options(${target} PRIVATE -fPIC)
  if(ADJOIN_SANITIZE)
    target_compile_options(${target} PRIVATE -fsanitize=${ADJOIN_SANITIZE} -fno-omit-frame-pointer)
    target_link_options(${target} PUBLIC -fsanitize=${ADJOIN_SANITIZE})
  endif()
  if(reuse_pch)
    target_precompile_headers(${target} REUSE_FROM adjoin_tensor)
    adjoin_torch_options(${target})
  elseif(NOT target MATCHES "^adjoin(_core|_tensor|_arguments|_torch)?$")
    target_precompile_headers(${target} REUSE_FROM adjoin_core)
  endif()
endfunction()

# What calls LibTorch spends its time there: a third less to compile, nothing lost.
function(adjoin_torch_options target)
  target_compile_options(${target} PRIVATE $<$<CONFIG:Release>:-O1>)
endfunction()

# adjoin_without_torch(<sources>): of a TORCH library, those that know no LibTorch. They are half the
# time to compile without its precompiled header, and may have loops of their own.
function(adjoin_without_torch)
  set_source_files_properties(${ARGN} PROPERTIES SKIP_PRECOMPILE_HEADERS ON)
  set_property(SOURCE ${ARGN} APPEND PROPERTY COMPILE_OPTIONS $<$<CONFIG:Release>:-O3>)
endfunction()

# adjoin_cuda_sources(<folder> <sources>): kernels for the GPUs of ADJOIN_CUDA_ARCHITECTURES. They
# know no LibTorch, and none of its flags.
function(adjoin_cuda_sources folder)
  add_library(adjoin_${folder}_cuda OBJECT ${ARGN})
  target_include_directories(adjoin_${folder}_cuda PRIVATE ${PROJECT_SOURCE_DIR}/src)
  target_compile_features(adjoin_${folder}_cuda PRIVATE cuda_std_20)
  set_target_properties(adjoin_${folder}_cuda PROPERTIES POSITION_INDEPENDENT_CODE ON
    CUDA_ARCHITECTURES "${ADJOIN_CUDA_ARCHITECTURES}")
  target_sources(adjoin_${folder} PRIVATE $<TARGET_OBJECTS:adjoin_${folder}_cuda>)
endfunction()
