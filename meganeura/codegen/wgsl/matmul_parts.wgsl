// matmul_parts: as matmul, for products too small to fill the machine with tiles. PARTS teams of WORKERS invocations
// share the terms of every slice; each team keeps a whole tile of sums, and the teams' sums meet in workgroup memory.

var<workgroup> slice_a: array<vec4<f32>, SLICE_A>;
var<workgroup> slice_b: array<vec4<f32>, SLICE_B>;
var<workgroup> meet: array<vec4<f32>, MEET>;

// Which vector of a slice an invocation loads: neighbours in memory go to neighbouring invocations.
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
  let team = lane / WORKERS;
  let worker = lane % WORKERS;
  let down = worker / ACROSS;
  let across = worker % ACROSS;
  // @unroll i < TM4
  // @unroll j < TN4
  var sum_x_$i_$j = vec4<f32>(0.0);
  var sum_y_$i_$j = vec4<f32>(0.0);
  var sum_z_$i_$j = vec4<f32>(0.0);
  var sum_w_$i_$j = vec4<f32>(0.0);
  // @end
  // @end
  for (var k0 = 0u; k0 < K; k0 += BK) {
    // @unroll i < LOADS_A
    slice_a[spot_a(lane + $iu * THREADS).y * ROW_A + spot_a(lane + $iu * THREADS).x]
      = load_a(batch, m0 + spot_a(lane + $iu * THREADS).x, k0 + spot_a(lane + $iu * THREADS).y);
    // @end
    // @unroll i < LOADS_B
    slice_b[spot_b(lane + $iu * THREADS).y * ROW_B + spot_b(lane + $iu * THREADS).x]
      = load_b(batch, k0 + spot_b(lane + $iu * THREADS).y, n0 + spot_b(lane + $iu * THREADS).x);
    // @end
    workgroupBarrier();
    for (var k = team; k < BK; k += PARTS) {
      // @unroll i < TM4
      let a$i = slice_a[k * ROW_A + down * TM4 + $iu];
      // @end
      // @unroll j < TN4
      let b$j = slice_b[k * ROW_B + across + $ju * ACROSS];
      // @end
      // @unroll i < TM4
      // @unroll j < TN4
      sum_x_$i_$j += a$i.x * b$j;
      sum_y_$i_$j += a$i.y * b$j;
      sum_z_$i_$j += a$i.z * b$j;
      sum_w_$i_$j += a$i.w * b$j;
      // @end
      // @end
    }
    workgroupBarrier();
  }
  // Every sum has a number: its row in the register tile times TN4, plus its column.
  // @unroll i < TM4
  // @unroll j < TN4
  meet[(($iu * 4u) * TN4 + $ju) * THREADS + lane] = sum_x_$i_$j;
  meet[(($iu * 4u + 1u) * TN4 + $ju) * THREADS + lane] = sum_y_$i_$j;
  meet[(($iu * 4u + 2u) * TN4 + $ju) * THREADS + lane] = sum_z_$i_$j;
  meet[(($iu * 4u + 3u) * TN4 + $ju) * THREADS + lane] = sum_w_$i_$j;
  // @end
  // @end
  workgroupBarrier();
  for (var s = team; s < SUMS; s += PARTS) {
    var total = vec4<f32>(0.0);
    for (var other = 0u; other < PARTS; other++) {
      total += meet[s * THREADS + other * WORKERS + worker];
    }
    store(batch, tile.y * BM + down * TM + s / TN4, n0 + across + (s % TN4) * ACROSS, total);
  }
}
