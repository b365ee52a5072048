"""Bad input on a device: whole messages, and nothing lost."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import meganeura as mg
from meganeura.errors import (
    CheckpointError,
    DeviceError,
    DeviceLostError,
    FeedError,
    MeganeuraError,
    OptionError,
    TargetError,
)
from meganeura.runtime.adapters import devices
from meganeura.runtime.device import GpuDevice, get_device
from meganeura.runtime.program import Program
from meganeura.target import Target
from tests.device.support import device


def model(on: str = "numpy") -> Program:
    x = mg.input("x", (2, 3))
    i = mg.input("i", (2,), mg.i32)
    return mg.compile({"y": mg.sum(x * 2.0, 1) + i}, device=on)


def message(error: pytest.ExceptionInfo[MeganeuraError]) -> list[str]:
    """The lines of a message, less where it was, which depends on this file."""
    return [line for line in str(error.value).split("\n") if not line.startswith("  where:")]


@pytest.mark.parametrize("on", ["numpy", "llvmpipe"])
def test_feeds_that_do_not_fit(on: str) -> None:
    program = model(on)
    x, i = np.ones((2, 3), np.float32), np.zeros(2, np.int32)
    with pytest.raises(FeedError) as error:
        program(x=x, j=i)
    assert message(error) == [
        "there is no input 'j'",
        "  expected: one of: x, i",
        "  got:      'j'",
    ]
    with pytest.raises(FeedError) as error:
        program(x=x)
    assert message(error) == [
        "the feed 'i' is missing",
        "  expected: [2] i32",
        "  got:      nothing",
        "  try:      program(i=...)",
    ]
    with pytest.raises(FeedError) as error:
        program(x=x[0], i=i)
    assert message(error) == [
        "the feed 'x' has another shape",
        "  expected: [2, 3] f32",
        "  got:      [3] float32",
    ]
    with pytest.raises(FeedError) as error:
        program(x=x, i=i.astype(np.float32))
    assert message(error) == [
        "the feed 'i' has another type",
        "  expected: [2] i32",
        "  got:      [2] float32",
        "  try:      convert it, as in array.astype(np.int32)",
    ]
    with pytest.raises(FeedError) as error:
        program(x, i, i)
    assert message(error) == ["too many feeds", "  expected: 2: x, i", "  got:      3"]
    np.testing.assert_array_equal(program(x, i), [6.0, 6.0])


def test_a_number_that_the_type_of_a_feed_cannot_hold() -> None:
    program = mg.compile(mg.input("i", (2,), mg.i32) + 1, device="numpy")
    with pytest.raises(FeedError) as error:
        program(np.array([1, 2**40]))
    assert message(error) == [
        "the feed 'i' holds a number that does not fit into i32",
        "  expected: -2,147,483,648 to 2,147,483,647",
        "  got:      1,099,511,627,776",
    ]
    np.testing.assert_array_equal(program([1, -(2**31)]), [2, -(2**31) + 1])


def test_rows_of_different_lengths_are_no_feed() -> None:
    program = mg.compile(mg.input("x", (2, 2)) + 1, device="numpy")
    with pytest.raises(FeedError) as error:
        program(x=[[1, 2], [3]])
    assert message(error) == [
        "the value of 'x' is no array",
        "  expected: [2, 2] f32",
        "  got:      a list whose rows have different lengths",
    ]


def test_an_input_may_be_called_as_an_argument_of_ours() -> None:
    x, y = mg.input("self", (2,)), mg.input("name", (2,))
    program = mg.compile((x * y).named("product") + 1, device="numpy")
    feeds = {"self": [1.0, 2.0], "name": [3.0, 4.0]}
    np.testing.assert_array_equal(program(**feeds), [4.0, 9.0])
    np.testing.assert_array_equal(program.read("product", **feeds), [3.0, 8.0])


def test_a_tensor_over_the_binding_limit_names_its_line() -> None:
    limit = device().target.storage_binding
    rows = limit // 4096 + 1
    big = mg.input("big", (rows, 1024))
    with pytest.raises(TargetError) as error:
        mg.compile(mg.sum(big), device=device())
    assert message(error) == [
        "the input 'big' is too large for one buffer",
        f"  expected: at most {limit:,} bytes on {device().target.name}",
        f"  got:      [{rows}, 1024] f32, {rows * 4096:,} bytes",
        "  try:      use a smaller batch, or split the tensor",
    ]
    assert "test_errors.py" in str(error.value)


def test_an_illegal_tile_says_which_rule_it_breaks() -> None:
    y = mg.matmul(mg.input("a", (64, 64)), mg.input("b", (64, 64))).named("y")
    default = mg.compile(y, device="numpy").kernels[0].tile.describe()
    with pytest.raises(OptionError) as error:
        mg.compile(y, device="numpy", tile={"y": (64, 64, 16, 6, 4)})
    assert message(error) == [
        "the tile (64, 64, 16, 6, 4) for 'y' is illegal",
        "  expected: tm and tn are multiples of 4 that divide bm and bn",
        "  got:      64×64×16, 6×4 per invocation",
        f"  try:      {default} is the default",
    ]


def test_a_tile_for_a_tensor_that_is_not_there() -> None:
    with pytest.raises(OptionError) as error:
        mg.compile({"y": mg.input("a", (4,)) * 2.0}, device="numpy", tile={"z": (64, 1)})
    assert message(error) == [
        "no tensor 'z' to tile",
        "  expected: one of: y",
        "  got:      'z'",
    ]


def test_an_unknown_option() -> None:
    with pytest.raises(OptionError) as error:
        mg.compile(mg.input("x", (2,)), fuze=False)
    assert message(error)[0] == "there is no option 'fuze'"


def test_an_unknown_device() -> None:
    with pytest.raises(DeviceError) as error:
        get_device("voodoo 2")
    assert message(error)[0] == "there is no device 'voodoo 2'"


def test_a_lost_device_is_said_to_be_lost() -> None:
    row = next(r for r in devices() if "llvmpipe" in r.name and r.target is not None)
    own = GpuDevice(row.adapter)
    program = mg.compile(mg.input("x", (8,)) * 2.0, device=own)
    program(x=np.ones(8, np.float32))
    own.handle.destroy()
    for _ in range(2):
        with pytest.raises(DeviceLostError) as error:
            program(x=np.ones(8, np.float32))
        assert message(error)[0] == f"the device {own.name} was lost"
    assert "restart the kernel" in str(error.value)


def test_without_an_adapter_numpy_is_the_default() -> None:
    code = (
        "import meganeura as mg; print(mg.compile(mg.input('x', (2,)) * 2.0)); "
        "print(mg.devices()[-1])"
    )
    result = subprocess.run(
        [sys.executable, "-c", code],
        env={
            "PATH": "",
            "VK_DRIVER_FILES": "/nowhere.json",
            "VK_ICD_FILENAMES": "/nowhere.json",
            "WGPU_BACKEND_TYPE": "Vulkan",
            "LIBGL_DRIVERS_PATH": "/nowhere",
        },
        capture_output=True,
        text=True,
        check=True,
        timeout=120,
    )
    assert "on NumPy" in result.stdout
    assert "* NumPy" in result.stdout


def test_programs_fit_webgpus_default_limits() -> None:
    """What only a poorer device grants is enough for a training step's kernels."""
    target = Target(name="WebGPU defaults", backend="Vulkan", kind="hardware")
    from meganeura.compiler import compile_graph
    from meganeura.plan import Options
    from meganeura.train.optim import AdamW
    from meganeura.train.step import step_graph

    x, y = mg.input("x", (128, 64)), mg.input("y", (128,), mg.i32)
    logits = mg.nn.linear(mg.relu(mg.nn.linear(x, 64, name="hidden")), 10, name="out")
    graph = mg.compile({"loss": mg.cross_entropy(logits, y)}, device="numpy").graph
    plan = compile_graph(step_graph(graph, "loss", AdamW()), Options(), target)
    assert len(plan.kernels) <= 14
    for kernel in plan.kernels:
        assert len(kernel.bindings) <= target.storage_buffers
        assert kernel.workgroup <= target.invocations
        assert kernel.workgroup_bytes <= target.workgroup_memory


def test_a_parameter_takes_numbers() -> None:
    w = mg.parameter("w", (2,), 1.0)
    program = mg.compile(w * 2, device="numpy")
    for value, got in ((["a", "b"], "[2] <U1"), (np.ones(2, complex), "[2] complex128")):
        with pytest.raises(FeedError) as error:
            program.set_parameters({"w": value})
        assert message(error) == [
            "the parameter 'w' takes numbers",
            "  expected: [2] f32",
            f"  got:      {got}",
        ]
    np.testing.assert_array_equal(program.parameters["w"], [1.0, 1.0])


def test_where_a_checkpoint_cannot_be_written_nothing_is_trained(tmp_path: Path) -> None:
    w = mg.parameter("w", (2,), 1.0)
    program = mg.compile({"loss": mg.sum(w * w)}, device="numpy")
    with pytest.raises(CheckpointError) as error:
        mg.train(program, loss="loss", data=[{}], checkpoint=tmp_path / "no" / "c.safetensors")
    assert message(error) == [
        "a checkpoint cannot be written to c.safetensors",
        "  expected: the path of a file in a folder that is there",
        f"  got:      no folder {tmp_path / 'no'}",
        f"  try:      make it first: mkdir -p {tmp_path / 'no'}",
    ]
    with pytest.raises(CheckpointError, match="name a file in it"):
        mg.train(program, loss="loss", data=[{}], checkpoint=tmp_path)
    np.testing.assert_array_equal(program.parameters["w"], [1.0, 1.0])


def test_steps_are_whole() -> None:
    program = mg.compile({"loss": mg.sum(mg.parameter("w", (2,), 1.0))}, device="numpy")
    with pytest.raises(OptionError) as error:
        mg.train(program, loss="loss", data=[{}], steps=1.5)  # type: ignore[arg-type] # on purpose
    assert message(error) == [
        "steps is a whole number",
        "  expected: such as 400",
        "  got:      1.5",
    ]
