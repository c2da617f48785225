#include "museum.hpp"

#include "../broken/exhibit.hpp"
#include "01_threads/arrives_twice.hpp"
#include "01_threads/barrier_of_even_lanes.hpp"
#include "01_threads/barriers_out_of_step.hpp"
#include "01_threads/every_thread_adds.hpp"
#include "01_threads/half_the_block_syncs.hpp"
#include "01_threads/one_id_for_two_barriers.hpp"
#include "01_threads/reduction_in_a_loop.hpp"
#include "01_threads/vote_is_no_barrier.hpp"
#include "01_threads/warp_synchronous_sum.hpp"
#include "02_cp_async/commits_after_the_wait.hpp"
#include "02_cp_async/epilogue_over_a_prefetch.hpp"
#include "02_cp_async/waits_for_its_own.hpp"
#include "03_tma/box_larger_than_expected.hpp"
#include "03_tma/fence_in_a_loop_not_taken.hpp"
#include "03_tma/flag_before_a_tma_load.hpp"
#include "03_tma/load_behind_the_reads.hpp"
#include "03_tma/parity_of_the_ring.hpp"
#include "03_tma/polls_the_first_barrier.hpp"
#include "03_tma/staging_of_the_next_wave.hpp"
#include "03_tma/store_behind_a_barrier.hpp"
#include "03_tma/waits_for_one_store_too_few.hpp"
#include "04_wgmma/more_registers_than_there_are.hpp"
#include "04_wgmma/one_buffer_for_two_dots.hpp"
#include "04_wgmma/p_without_a_fence.hpp"
#include "04_wgmma/refilled_behind_one_warpgroup.hpp"
#include "05_clusters/arrival_that_stays_at_home.hpp"
#include "05_clusters/leaves_while_the_peer_reads.hpp"
#include "05_clusters/multicast_over_a_peers_epilogue.hpp"
#include "05_clusters/runs_ahead_of_the_leader.hpp"
#include "05_clusters/stores_before_the_peer_is_there.hpp"
#include "06_grids/counted_before_all_have_written.hpp"
#include "06_grids/flag_read_by_a_plain_load.hpp"
#include "06_grids/reads_before_the_last_grid_is_done.hpp"
#include "06_grids/semaphore_without_a_fence.hpp"
#include "page.hpp"

namespace tegula::museum {

using broken::exhibit;

broken::Gallery const& gallery() {
  static broken::Gallery const made = {
      "museum",
      "Public bugs of shipped GPU kernels, each as a short kernel, and what the checker says of it",
      GALLERY_FOLDER,
      {
          {"01_threads",
           "Threads that share memory",
           {exhibit<reduction_in_a_loop>(), exhibit<warp_synchronous_sum>(),
            exhibit<vote_is_no_barrier>(), exhibit<every_thread_adds>(),
            exhibit<barrier_of_even_lanes>(), exhibit<half_the_block_syncs>(),
            exhibit<barriers_out_of_step>(), exhibit<arrives_twice>(),
            exhibit<one_id_for_two_barriers>()}},
          {"02_cp_async",
           "Copies that a thread starts",
           {exhibit<waits_for_its_own>(), exhibit<epilogue_over_a_prefetch>(),
            exhibit<commits_after_the_wait>()}},
          {"03_tma",
           "TMA: barriers that count bytes, and two proxies",
           {exhibit<polls_the_first_barrier>(), exhibit<parity_of_the_ring>(),
            exhibit<box_larger_than_expected>(), exhibit<store_behind_a_barrier>(),
            exhibit<fence_in_a_loop_not_taken>(), exhibit<waits_for_one_store_too_few>(),
            exhibit<staging_of_the_next_wave>(), exhibit<load_behind_the_reads>(),
            exhibit<flag_before_a_tma_load>()}},
          {"04_wgmma",
           "Tensor cores that read while threads go on",
           {exhibit<p_without_a_fence>(), exhibit<refilled_behind_one_warpgroup>(),
            exhibit<one_buffer_for_two_dots>(), exhibit<more_registers_than_there_are>()}},
          {"05_clusters",
           "CTAs that share memory",
           {exhibit<stores_before_the_peer_is_there>(), exhibit<leaves_while_the_peer_reads>(),
            exhibit<multicast_over_a_peers_epilogue>(), exhibit<arrival_that_stays_at_home>(),
            exhibit<runs_ahead_of_the_leader>()}},
          {"06_grids",
           "Grids",
           {exhibit<semaphore_without_a_fence>(), exhibit<counted_before_all_have_written>(),
            exhibit<flag_read_by_a_plain_load>(), exhibit<reads_before_the_last_grid_is_done>()}},
      },
      page,
      std::filesystem::path(GALLERY_FOLDER) / "../../docs/museum.md"};
  return made;
}

}  // namespace tegula::museum
