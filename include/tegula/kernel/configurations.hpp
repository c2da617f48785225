#pragma once

#include "tegula/kernel/append_keys_table.hpp"
#include "tegula/kernel/attention_sm100_table.hpp"
#include "tegula/kernel/attention_sm80_table.hpp"
#include "tegula/kernel/attention_sm90_table.hpp"
#include "tegula/kernel/family_list.hpp"
#include "tegula/kernel/gemm_inputs_table.hpp"
#include "tegula/kernel/gemm_sm100_table.hpp"
#include "tegula/kernel/gemm_sm80_table.hpp"
#include "tegula/kernel/gemm_sm90_table.hpp"
#include "tegula/kernel/grouped_gemm_sm100_table.hpp"
#include "tegula/kernel/grouped_gemm_sm90_table.hpp"
#include "tegula/kernel/scaled_gemm_sm100_table.hpp"

/// Every family of kernels. Its configurations are a table of values (kernel/NAME_table.hpp). A
/// kernel is named by its index into that table, because a __global__ template cannot take the
/// configuration itself: nvcc's host stub cannot print a value of class type.
namespace tegula {

// A family is a value: configurations(gemm_sm90) are its configurations (device/launch.hpp). CMake
// reads the families' names here.
inline constexpr AttentionSm80Family attention_sm80;
inline constexpr AttentionSm90Family attention_sm90;
inline constexpr GemmSm80Family gemm_sm80;
inline constexpr GemmSm90Family gemm_sm90;
inline constexpr GroupedGemmSm90Family grouped_gemm_sm90;
inline constexpr GemmInputsFamily gemm_inputs;
inline constexpr GemmSm100Family gemm_sm100;
inline constexpr ScaledGemmSm100Family scaled_gemm_sm100;
inline constexpr GroupedGemmSm100Family grouped_gemm_sm100;
inline constexpr AppendKeysFamily append_keys;
inline constexpr AttentionSm100Family attention_sm100;

/// Every family. Of those that compute the same, a later one is preferred.
using Families =
    FamilyList<AttentionSm80Family, AttentionSm90Family, GemmSm80Family, GemmSm90Family,
               GroupedGemmSm90Family, GemmInputsFamily, GemmSm100Family, ScaledGemmSm100Family,
               GroupedGemmSm100Family, AppendKeysFamily, AttentionSm100Family>;

/// The family of a configuration's type.
template <class Config> using FamilyOf = typename detail::FamilyOfConfig<Config, Families>::type;
template <class Config>
concept FamilyConfig = requires {
  typename FamilyOf<Config>;
};

}  // namespace tegula
