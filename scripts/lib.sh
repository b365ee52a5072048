# Shared by the scripts: everything that sets a machine up. Sourced, never run. Every step does nothing when it is done.

VENV=.venv
STAMPS=$VENV/.meganeura
unset PYTHONPATH PYTHONHOME VIRTUAL_ENV

# Mesa complains on every start where this is not set, as over ssh or in a container.
if [ "$(uname -s)" = Linux ] && [ -z "${XDG_RUNTIME_DIR:-}" ]; then
  mkdir -p -m 700 build build/run
  export XDG_RUNTIME_DIR=$PWD/build/run
fi

say() { printf '%s\n' "$@" >&2; }
die() { say "$@"; exit 1; }

# --- apt ---

as_root() { if [ "$(id -u)" = 0 ]; then "$@"; else sudo -n "$@"; fi; }

apt_usable() {
  command -v apt-get >/dev/null || return 1
  [ "$(id -u)" = 0 ] || sudo -n true 2>/dev/null
}

# apt_install WHY PACKAGE...: install what is missing, or say the line to type and fail.
apt_install() {
  local why=$1
  shift
  if dpkg -s "$@" >/dev/null 2>&1; then return 0; fi
  if apt_usable; then
    say "installing $* ($why)"
    if as_root env DEBIAN_FRONTEND=noninteractive sh -c '
      apt-get -qq -o Acquire::Retries=3 update &&
      apt-get -qq -y --no-install-recommends -o Acquire::Retries=3 install "$@"' sh "$@" >/dev/null; then
      return 0
    fi
  fi
  if command -v apt-get >/dev/null; then
    say "$why. To install it, type:" "  sudo apt-get install -y $*"
  fi
  return 1
}

# --- Python ---

# is_python COMMAND: whether it runs and is a version that the project supports.
is_python() {
  "$1" -c 'import sys; sys.exit(not (3, 11) <= sys.version_info[:2] <= (3, 13))' >/dev/null 2>&1
}

find_python() {
  local candidate
  for candidate in python3 python3.13 python3.12 python3.11 python; do
    if is_python "$candidate"; then command -v "$candidate"; return 0; fi
  done
  return 1
}

setup_venv() {
  local python
  if is_python "$VENV/bin/python" && "$VENV/bin/python" -c 'import pip' 2>/dev/null; then
    mkdir -p "$STAMPS"
    return 0
  fi
  python=$(find_python) || { apt_install 'Python 3.11 to 3.13 is needed' python3 python3-venv || true; }
  python=$(find_python) || die 'No Python 3.11, 3.12 or 3.13 was found on the PATH. Install one and run this again.'
  "$python" -c 'import ensurepip, venv' 2>/dev/null ||
    apt_install "Python's venv module is needed" python3-venv || exit 1
  say "making $VENV with $("$python" --version)"
  "$python" -m venv --clear "$VENV"
  mkdir -p "$STAMPS"
}

# once NAME KEY COMMAND...: run the command unless it ran with the same key before.
once() {
  local stamp=$STAMPS/$1 key=$2
  shift 2
  if [ -f "$stamp" ] && [ "$(cat "$stamp")" = "$key" ]; then return 0; fi
  "$@" || return
  printf '%s\n' "$key" > "$stamp"
}

key_of() { cat "$@" | cksum; }

pip_install() { "$VENV/bin/python" -m pip install --quiet --quiet --disable-pip-version-check "$@"; }

install_lock() {
  say 'installing the locked packages'
  pip_install --no-deps --requirement requirements/lock.txt
}

install_project() { pip_install --no-deps --no-build-isolation --editable .; }

# Everything that both commands need: the venv, the locked packages, the built front end, the project itself.
setup() {
  mkdir -p build
  setup_venv
  once lock "$(key_of requirements/lock.txt)" install_lock
  "$VENV/bin/python" hatch_build.py
  once project "$(key_of pyproject.toml hatch_build.py extension/kernelspec/* build/front-end.sha256)" install_project
}

# --- What the GPU and the browser need ---

# Whether wgpu finds an adapter that is not OpenGL's. A process of its own, since a broken driver may end it.
has_adapter() {
  "$VENV/bin/python" - 2>/dev/null <<'PYTHON'
import sys
import wgpu

backends = [adapter.info["backend_type"] for adapter in wgpu.gpu.enumerate_adapters_sync()]
sys.exit(not any(backend in ("Vulkan", "Metal", "D3D12") for backend in backends))
PYTHON
}

setup_gpu() {
  if has_adapter; then return 0; fi
  if [ "$(uname -s)" = Linux ]; then
    apt_install 'No Vulkan adapter was found' libvulkan1 mesa-vulkan-drivers || true
  fi
  has_adapter || say 'Going on without a GPU: the NumPy device runs everything, only slower.'
}

find_chromium() {
  command -v chromium || command -v chromium-browser || command -v google-chrome ||
    command -v '/Applications/Google Chrome.app/Contents/MacOS/Google Chrome'
}

# Ubuntu's package is a snap, which a script cannot count on; there the browser is the user's to install.
setup_chromium() {
  if find_chromium >/dev/null; then return 0; fi
  if grep -qs '^ID=debian' /etc/os-release && apt_install 'The browser tests need Chromium' chromium; then
    return 0
  fi
  say 'Going on without Chromium: the browser tests are skipped.'
}
