#include "gallery.hpp"

#include "01_memory/assertion.hpp"
#include "01_memory/bank_conflicts.hpp"
#include "01_memory/carrying_step.hpp"
#include "01_memory/edge_too_near.hpp"
#include "01_memory/misaligned.hpp"
#include "01_memory/past_the_tensor.hpp"
#include "01_memory/past_the_tile.hpp"
#include "01_memory/rest_of_the_row.hpp"
#include "01_memory/uncoalesced.hpp"
#include "01_memory/uninitialized_global.hpp"
#include "01_memory/uninitialized_read.hpp"
#include "02_barriers/barrier_in_a_branch.hpp"
#include "02_barriers/counters_not_cleared.hpp"
#include "02_barriers/crossed_barriers.hpp"
#include "02_barriers/early_exit.hpp"
#include "02_barriers/missing_barrier.hpp"
#include "02_barriers/missing_second_barrier.hpp"
#include "02_barriers/two_writers.hpp"
#include "02_barriers/wrong_barrier.hpp"
#include "02_barriers/wrong_count.hpp"
#include "03_warps/missing_warp_sync.hpp"
#include "03_warps/mma_in_a_branch.hpp"
#include "03_warps/paths_that_never_meet.hpp"
#include "03_warps/shuffle_is_no_barrier.hpp"
#include "03_warps/wrong_mask.hpp"
#include "04_cp_async/barrier_before_wait.hpp"
#include "04_cp_async/commit_in_a_branch.hpp"
#include "04_cp_async/filled_twice.hpp"
#include "04_cp_async/no_empty_group.hpp"
#include "04_cp_async/read_before_wait.hpp"
#include "04_cp_async/refilled_too_early.hpp"
#include "04_cp_async/stage_not_advanced.hpp"
#include "04_cp_async/wait_without_barrier.hpp"
#include "04_cp_async/zero_fill.hpp"
#include "05_mbarriers/answer_ignored.hpp"
#include "05_mbarriers/bytes_overflow.hpp"
#include "05_mbarriers/consumer_exits.hpp"
#include "05_mbarriers/copies_counted_twice.hpp"
#include "05_mbarriers/copies_not_counted.hpp"
#include "05_mbarriers/count_too_large.hpp"
#include "05_mbarriers/count_too_small.hpp"
#include "05_mbarriers/elected_in_each_warp.hpp"
#include "05_mbarriers/expected_too_late.hpp"
#include "05_mbarriers/init_not_seen.hpp"
#include "05_mbarriers/initialised_twice.hpp"
#include "05_mbarriers/invalidated_too_early.hpp"
#include "05_mbarriers/late_lane.hpp"
#include "05_mbarriers/mbarrier_as_data.hpp"
#include "05_mbarriers/one_lane_waits.hpp"
#include "05_mbarriers/one_writer_counted.hpp"
#include "05_mbarriers/parity_not_flipped.hpp"
#include "05_mbarriers/phases_restart.hpp"
#include "05_mbarriers/too_few_bytes.hpp"
#include "05_mbarriers/too_many_bytes.hpp"
#include "05_mbarriers/wrong_first_parity.hpp"
#include "06_tma/box_misplaced.hpp"
#include "06_tma/exit_before_read.hpp"
#include "06_tma/fence_off_the_path.hpp"
#include "06_tma/fence_too_early.hpp"
#include "06_tma/groups_of_two_stores.hpp"
#include "06_tma/init_without_fence.hpp"
#include "06_tma/load_over_stores.hpp"
#include "06_tma/map_never_encoded.hpp"
#include "06_tma/mbarrier_of_another_stage.hpp"
#include "06_tma/no_empty_wait.hpp"
#include "06_tma/read_back_too_early.hpp"
#include "06_tma/read_before_full.hpp"
#include "06_tma/released_too_early.hpp"
#include "06_tma/source_overwritten.hpp"
#include "06_tma/store_without_fence.hpp"
#include "06_tma/stored_after_the_fence.hpp"
#include "06_tma/stored_by_another_map.hpp"
#include "06_tma/two_elections.hpp"
#include "06_tma/wait_by_another_thread.hpp"
#include "07_wgmma/accumulator_in_flight.hpp"
#include "07_wgmma/copied_operand.hpp"
#include "07_wgmma/fragment_out_of_scope.hpp"
#include "07_wgmma/no_fence.hpp"
#include "07_wgmma/operand_registers_reused.hpp"
#include "07_wgmma/operand_without_proxy_fence.hpp"
#include "07_wgmma/other_swizzle.hpp"
#include "07_wgmma/registers_moved_twice.hpp"
#include "07_wgmma/registers_not_freed.hpp"
#include "07_wgmma/released_before_wait.hpp"
#include "07_wgmma/scaled_without_fence.hpp"
#include "07_wgmma/too_many_accumulators.hpp"
#include "07_wgmma/warp_missing.hpp"
#include "07_wgmma/wrong_descriptor.hpp"
#include "07_wgmma/wrong_direction.hpp"
#include "08_clusters/arrival_at_the_gone.hpp"
#include "08_clusters/arrives_at_home.hpp"
#include "08_clusters/multicast_too_early.hpp"
#include "08_clusters/narrow_acquire.hpp"
#include "08_clusters/narrow_release.hpp"
#include "08_clusters/nothing_expected.hpp"
#include "08_clusters/one_cta_missing.hpp"
#include "08_clusters/peer_gone.hpp"
#include "08_clusters/peer_not_ready.hpp"
#include "08_clusters/relaxed_arrival.hpp"
#include "08_clusters/remote_before_start.hpp"
#include "08_clusters/sent_but_not_there.hpp"
#include "08_clusters/wait_at_a_peers.hpp"
#include "09_global_memory/barrier_before_flag.hpp"
#include "09_global_memory/fence_on_one_side.hpp"
#include "09_global_memory/flag_without_fence.hpp"
#include "09_global_memory/loaded_without_fence.hpp"
#include "09_global_memory/not_cooperative.hpp"
#include "09_global_memory/read_only_path.hpp"
#include "09_global_memory/scope_too_small.hpp"
#include "09_global_memory/started_early.hpp"
#include "09_global_memory/ticket_without_order.hpp"
#include "09_global_memory/two_ctas.hpp"
#include "09_global_memory/unlocked_without_fence.hpp"
#include "09_global_memory/warps_of_one_cta.hpp"
#include "10_schedules/livelock.hpp"
#include "10_schedules/waits_for_a_later_cta.hpp"
#include "10_schedules/who_comes_first.hpp"
#include "11_tensor_memory/beyond_the_columns.hpp"
#include "11_tensor_memory/collector_discarded.hpp"
#include "11_tensor_memory/collector_of_another_stage.hpp"
#include "11_tensor_memory/columns_in_other_lanes.hpp"
#include "11_tensor_memory/committed_by_another.hpp"
#include "11_tensor_memory/copied_over_scales.hpp"
#include "11_tensor_memory/freed_twice.hpp"
#include "11_tensor_memory/freed_while_loaded.hpp"
#include "11_tensor_memory/given_back_before_loaded.hpp"
#include "11_tensor_memory/lanes_of_another_warp.hpp"
#include "11_tensor_memory/never_written.hpp"
#include "11_tensor_memory/no_columns_left.hpp"
#include "11_tensor_memory/no_fence_after_the_wait.hpp"
#include "11_tensor_memory/no_fence_before_the_arrival.hpp"
#include "11_tensor_memory/not_freed.hpp"
#include "11_tensor_memory/operand_overwritten.hpp"
#include "11_tensor_memory/permit_given_up.hpp"
#include "11_tensor_memory/product_not_waited_for.hpp"
#include "11_tensor_memory/scales_not_repeated.hpp"
#include "11_tensor_memory/scales_of_one_operand.hpp"
#include "11_tensor_memory/shift_not_waited_for.hpp"
#include "11_tensor_memory/shifted_before_the_stores.hpp"
#include "11_tensor_memory/shifted_twice.hpp"
#include "11_tensor_memory/stationary_and_not.hpp"
#include "11_tensor_memory/store_not_waited_for.hpp"
#include "11_tensor_memory/stored_over_a.hpp"
#include "11_tensor_memory/two_shapes.hpp"
#include "11_tensor_memory/waits_for_the_first_product.hpp"
#include "11_tensor_memory/zero_columns_beyond_the_run.hpp"
#include "12_pairs/allocated_by_one.hpp"
#include "12_pairs/another_group.hpp"
#include "12_pairs/answer_read_early.hpp"
#include "12_pairs/asked_after_the_last.hpp"
#include "12_pairs/both_start.hpp"
#include "12_pairs/exit_before_the_commit.hpp"
#include "12_pairs/freed_by_one.hpp"
#include "12_pairs/given_back_by_one_pair.hpp"
#include "12_pairs/loaded_for_the_other_half.hpp"
#include "12_pairs/operands_of_the_peer.hpp"
#include "12_pairs/peer_not_waited_for.hpp"
#include "12_pairs/started_after_the_exit.hpp"
#include "exhibit.hpp"

namespace tegula::broken {

std::vector<Chapter> const& chapters() {
  static std::vector<Chapter> const made = {
      {"01_memory",
       "Memory",
       {exhibit<uninitialized_read>(), exhibit<uninitialized_global>(), exhibit<past_the_tile>(),
        exhibit<past_the_tensor>(), exhibit<edge_too_near>(), exhibit<rest_of_the_row>(),
        exhibit<misaligned>(), exhibit<carrying_step>(), exhibit<bank_conflicts>(),
        exhibit<uncoalesced>(), exhibit<assertion>()}},
      {"02_barriers",
       "Barriers of a CTA",
       {exhibit<missing_barrier>(), exhibit<missing_second_barrier>(), exhibit<two_writers>(),
        exhibit<counters_not_cleared>(), exhibit<early_exit>(), exhibit<barrier_in_a_branch>(),
        exhibit<wrong_barrier>(), exhibit<wrong_count>(), exhibit<crossed_barriers>()}},
      {"03_warps",
       "Lanes of a warp",
       {exhibit<missing_warp_sync>(), exhibit<shuffle_is_no_barrier>(), exhibit<mma_in_a_branch>(),
        exhibit<paths_that_never_meet>(), exhibit<wrong_mask>()}},
      {"04_cp_async",
       "cp.async",
       {exhibit<read_before_wait>(), exhibit<wait_without_barrier>(),
        exhibit<barrier_before_wait>(), exhibit<refilled_too_early>(), exhibit<filled_twice>(),
        exhibit<stage_not_advanced>(), exhibit<commit_in_a_branch>(), exhibit<no_empty_group>(),
        exhibit<zero_fill>()}},
      {"05_mbarriers", "Mbarriers", {exhibit<init_not_seen>(),
                                     exhibit<initialised_twice>(),
                                     exhibit<invalidated_too_early>(),
                                     exhibit<mbarrier_as_data>(),
                                     exhibit<count_too_small>(),
                                     exhibit<count_too_large>(),
                                     exhibit<expected_too_late>(),
                                     exhibit<wrong_first_parity>(),
                                     exhibit<parity_not_flipped>(),
                                     exhibit<phases_restart>(),
                                     exhibit<late_lane>(),
                                     exhibit<answer_ignored>(),
                                     exhibit<too_few_bytes>(),
                                     exhibit<too_many_bytes>(),
                                     exhibit<bytes_overflow>(),
                                     exhibit<consumer_exits>(),
                                     exhibit<one_writer_counted>(),
                                     exhibit<elected_in_each_warp>(),
                                     exhibit<one_lane_waits>(),
                                     exhibit<copies_not_counted>(),
                                     exhibit<copies_counted_twice>()}},
      {"06_tma",
       "TMA and the proxies",
       {exhibit<read_before_full>(), exhibit<no_empty_wait>(), exhibit<released_too_early>(),
        exhibit<init_without_fence>(), exhibit<store_without_fence>(), exhibit<fence_too_early>(),
        exhibit<fence_off_the_path>(), exhibit<load_over_stores>(), exhibit<source_overwritten>(),
        exhibit<wait_by_another_thread>(), exhibit<stored_after_the_fence>(),
        exhibit<two_elections>(), exhibit<groups_of_two_stores>(),
        exhibit<mbarrier_of_another_stage>(), exhibit<exit_before_read>(),
        exhibit<read_back_too_early>(), exhibit<box_misplaced>(), exhibit<stored_by_another_map>(),
        exhibit<map_never_encoded>()}},
      {"07_wgmma",
       "wgmma and its registers",
       {exhibit<no_fence>(), exhibit<scaled_without_fence>(), exhibit<accumulator_in_flight>(),
        exhibit<fragment_out_of_scope>(), exhibit<operand_registers_reused>(),
        exhibit<operand_without_proxy_fence>(), exhibit<copied_operand>(),
        exhibit<released_before_wait>(), exhibit<wrong_descriptor>(), exhibit<other_swizzle>(),
        exhibit<warp_missing>(), exhibit<registers_not_freed>(), exhibit<wrong_direction>(),
        exhibit<registers_moved_twice>(), exhibit<too_many_accumulators>()}},
      {"08_clusters",
       "Clusters",
       {exhibit<remote_before_start>(), exhibit<peer_not_ready>(), exhibit<relaxed_arrival>(),
        exhibit<peer_gone>(), exhibit<arrival_at_the_gone>(), exhibit<multicast_too_early>(),
        exhibit<nothing_expected>(), exhibit<arrives_at_home>(), exhibit<narrow_release>(),
        exhibit<narrow_acquire>(), exhibit<sent_but_not_there>(), exhibit<wait_at_a_peers>(),
        exhibit<one_cta_missing>()}},
      {"09_global_memory",
       "Global memory",
       {exhibit<two_ctas>(), exhibit<flag_without_fence>(), exhibit<fence_on_one_side>(),
        exhibit<ticket_without_order>(), exhibit<unlocked_without_fence>(),
        exhibit<scope_too_small>(), exhibit<barrier_before_flag>(), exhibit<warps_of_one_cta>(),
        exhibit<loaded_without_fence>(), exhibit<read_only_path>(), exhibit<not_cooperative>(),
        exhibit<started_early>()}},
      {"10_schedules",
       "Schedules",
       {exhibit<livelock>(), exhibit<waits_for_a_later_cta>(), exhibit<who_comes_first>()}},
      {"11_tensor_memory",
       "Tensor memory and tcgen05",
       {exhibit<never_written>(),
        exhibit<beyond_the_columns>(),
        exhibit<lanes_of_another_warp>(),
        exhibit<not_freed>(),
        exhibit<freed_twice>(),
        exhibit<permit_given_up>(),
        exhibit<committed_by_another>(),
        exhibit<waits_for_the_first_product>(),
        exhibit<freed_while_loaded>(),
        exhibit<no_columns_left>(),
        exhibit<store_not_waited_for>(),
        exhibit<product_not_waited_for>(),
        exhibit<no_fence_after_the_wait>(),
        exhibit<no_fence_before_the_arrival>(),
        exhibit<given_back_before_loaded>(),
        exhibit<operand_overwritten>(),
        exhibit<stored_over_a>(),
        exhibit<two_shapes>(),
        exhibit<copied_over_scales>(),
        exhibit<scales_of_one_operand>(),
        exhibit<scales_not_repeated>(),
        exhibit<shifted_before_the_stores>(),
        exhibit<shift_not_waited_for>(),
        exhibit<shifted_twice>(),
        exhibit<collector_discarded>(),
        exhibit<collector_of_another_stage>(),
        exhibit<columns_in_other_lanes>(),
        exhibit<stationary_and_not>(),
        exhibit<zero_columns_beyond_the_run>()}},
      {"12_pairs",
       "Pairs of CTAs, and cluster launch control",
       {exhibit<allocated_by_one>(), exhibit<freed_by_one>(), exhibit<another_group>(),
        exhibit<both_start>(), exhibit<operands_of_the_peer>(), exhibit<peer_not_waited_for>(),
        exhibit<started_after_the_exit>(), exhibit<exit_before_the_commit>(),
        exhibit<loaded_for_the_other_half>(), exhibit<given_back_by_one_pair>(),
        exhibit<answer_read_early>(), exhibit<asked_after_the_last>()}},
  };
  return made;
}

Gallery const& gallery() {
  static Gallery const made = {"broken",
                               "Kernels with one mistake each, and what the checker says of them",
                               GALLERY_FOLDER, chapters()};
  return made;
}

}  // namespace tegula::broken
