// matmul: a workgroup makes a BM x BN tile of the product in steps of BK; an invocation keeps TM x TN sums in registers.
// The next slices of both operands are loaded into registers while the present ones are multiplied out of workgroup memory.
// Slices lie there as [k][m] and [k][n], four neighbours to a vector, each row padded by one against bank conflicts.
//
// Generated above: the constants (a 4 at the end counts vectors: BM4 = BM / 4), and the hooks load_a, load_b, store.
// ROW_A, ROW_B: vectors from one k to the next in a slice. ACROSS: invocations side by side in a tile. LAST_K: where the
// last slice begins. A_ALONG_K: neighbours of a lie along k in memory. `@unroll i < N` ... `@end` repeats its lines with
// $i replaced by 0, 1 ... N - 1, so $iu is 0u, 1u ...

var<workgroup> slice_a: array<vec4<f32>, SLICE_A>;
var<workgroup> slice_b: array<vec4<f32>, SLICE_B>;

// Which vector of a slice an invocation loads, as (m or n, k): neighbours in memory go to neighbouring invocations.
fn spot_a(i: u32) -> vec2<u32> {
  if (A_ALONG_K) {
    return vec2<u32>(i / BK, i % BK);
  }
  return vec2<u32>(i % BM4, i / BM4);
}

fn spot_b(i: u32) -> vec2<u32> {
  if (B_ALONG_K) {
    return vec2<u32>(i / BK, i % BK);
  }
  return vec2<u32>(i % BN4, i / BN4);
}

@compute @workgroup_size(THREADS)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
  let tile = mg_tile(group);
  if (tile.z >= BATCH) {
    return;
  }
  let batch = tile.z;
  let m0 = tile.y * BM4;
  let n0 = tile.x * BN4;
  let down = lane / ACROSS;
  let across = lane % ACROSS;
  // @unroll i < TM4
  // @unroll j < TN4
  var sum_x_$i_$j = vec4<f32>(0.0);
  var sum_y_$i_$j = vec4<f32>(0.0);
  var sum_z_$i_$j = vec4<f32>(0.0);
  var sum_w_$i_$j = vec4<f32>(0.0);
  // @end
  // @end
  // @unroll i < LOADS_A
  var next_a$i = load_a(batch, m0 + spot_a(lane + $iu * THREADS).x, spot_a(lane + $iu * THREADS).y);
  // @end
  // @unroll i < LOADS_B
  var next_b$i = load_b(batch, spot_b(lane + $iu * THREADS).y, n0 + spot_b(lane + $iu * THREADS).x);
  // @end
  for (var k0 = 0u; k0 < K; k0 += BK) {
    // @unroll i < LOADS_A
    slice_a[spot_a(lane + $iu * THREADS).y * ROW_A + spot_a(lane + $iu * THREADS).x] = next_a$i;
    // @end
    // @unroll i < LOADS_B
    slice_b[spot_b(lane + $iu * THREADS).y * ROW_B + spot_b(lane + $iu * THREADS).x] = next_b$i;
    // @end
    workgroupBarrier();
    let k1 = min(k0 + BK, LAST_K);  // in the last round the slice is loaded again, and not used
    // @unroll i < LOADS_A
    next_a$i = load_a(batch, m0 + spot_a(lane + $iu * THREADS).x, k1 + spot_a(lane + $iu * THREADS).y);
    // @end
    // @unroll i < LOADS_B
    next_b$i = load_b(batch, k1 + spot_b(lane + $iu * THREADS).y, n0 + spot_b(lane + $iu * THREADS).x);
    // @end
    // UNROLL terms are written out, so that the loads of one hide behind the arithmetic of another.
    for (var k = 0u; k < BK; k += UNROLL) {
      // @unroll u < UNROLL
      // @unroll i < TM4
      let a$u_$i = slice_a[(k + $uu) * ROW_A + down * TM4 + $iu];
      // @end
      // @unroll j < TN4
      let b$u_$j = slice_b[(k + $uu) * ROW_B + across + $ju * ACROSS];
      // @end
      // @unroll i < TM4
      // @unroll j < TN4
      sum_x_$i_$j += a$u_$i.x * b$u_$j;
      sum_y_$i_$j += a$u_$i.y * b$u_$j;
      sum_z_$i_$j += a$u_$i.z * b$u_$j;
      sum_w_$i_$j += a$u_$i.w * b$u_$j;
      // @end
      // @end
      // @end
    }
    workgroupBarrier();
  }
  let m1 = tile.y * BM + down * TM;
  // @unroll i < TM4
  // @unroll j < TN4
  store(batch, m1 + $iu * 4u, n0 + across + $ju * ACROSS, sum_x_$i_$j);
  store(batch, m1 + $iu * 4u + 1u, n0 + across + $ju * ACROSS, sum_y_$i_$j);
  store(batch, m1 + $iu * 4u + 2u, n0 + across + $ju * ACROSS, sum_z_$i_$j);
  store(batch, m1 + $iu * 4u + 3u, n0 + across + $ju * ACROSS, sum_w_$i_$j);
  // @end
  // @end
}
