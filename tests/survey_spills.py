#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Whether kernels that `auto` chooses spill: run by hand over folders of matrices, for it takes hours on few cores.

For every matrix, and every architecture of `cbgen help architectures`, it makes the text that `cbgen generate` writes
and compiles it by NVRTC as users do. Prints each kernel that spills, and counts. Of the kinds of products (type, form,
fixed values) each matrix gets one for all architectures, by turns, or all of them with --all.

    tests/survey_spills.py TOOL NVRTC FOLDER … [--all] [--arch sm_90,…] [--share I/N]
"""
import argparse
import collections
import ctypes
import os
import re
import subprocess

KINDS = [(kind, form, values) for form, values in (("axpby", "data"), ("ax", "data"), ("ax", "fixed"), ("add", "data"))
         for kind in ("f64", "f32", "f32-f64", "f16-f32")]


def open_nvrtc(path):
    nvrtc = ctypes.CDLL(path)
    nvrtc.nvrtcGetErrorString.restype = ctypes.c_char_p
    return nvrtc


def compile_text(nvrtc, text, arch):
    """Registers and spilled bytes of the kernel that is worst, from the assembler's remarks."""
    program, size = ctypes.c_void_p(), ctypes.c_size_t()
    options = [f"--gpu-architecture={arch}".encode(), b"--std=c++17", b"--fmad=false", b"--ptxas-options=-v"]
    result = nvrtc.nvrtcCreateProgram(ctypes.byref(program), text.encode(), b"kernel.cu", 0, None, None)
    if not result:
        result = nvrtc.nvrtcCompileProgram(program, len(options), (ctypes.c_char_p * len(options))(*options))
    nvrtc.nvrtcGetProgramLogSize(program, ctypes.byref(size))
    log = ctypes.create_string_buffer(size.value)
    nvrtc.nvrtcGetProgramLog(program, log)
    nvrtc.nvrtcDestroyProgram(ctypes.byref(program))
    words = log.value.decode()
    frames = [int(n) for n in re.findall(r"(\d+) bytes stack frame", words)]
    if result or not frames:
        raise RuntimeError(f"{nvrtc.nvrtcGetErrorString(result).decode()}: {words[:400]}")
    return max(int(n) for n in re.findall(r"Used (\d+) registers", words)), max(frames)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("tool")
    parser.add_argument("nvrtc")
    parser.add_argument("folders", nargs="+")
    parser.add_argument("--all", action="store_true")
    parser.add_argument("--arch")
    parser.add_argument("--share", default="0/1")
    call = parser.parse_args()
    table = subprocess.run([call.tool, "help", "architectures"], capture_output=True, text=True, check=True).stdout
    arches = call.arch.split(",") if call.arch else re.findall(r"^  (sm_\d+\b)(?! +refused)", table, flags=re.M)
    own, shares = (int(n) for n in call.share.split("/"))
    nvrtc = open_nvrtc(call.nvrtc)
    paths = sorted(os.path.join(folder, name) for folder in call.folders for name in os.listdir(folder)
                   if ".mtx" in name)
    counts = collections.Counter()
    for number, path in enumerate(paths):
        if number % shares != own:
            continue
        for kind, form, values in KINDS if call.all else [KINDS[number % len(KINDS)]]:
            for arch in arches:
                what = [f"--type={kind}", f"--form={form}", f"--values={values}", f"--arch={arch}"]
                made = subprocess.run([call.tool, path, "-o", "-", "--embed=never", "-q", *what], capture_output=True,
                                      text=True, check=False)
                if made.returncode:
                    counts["refused"] += 1
                    print(os.path.basename(path), *what, made.stderr.strip(), flush=True)
                    continue
                registers, spilled = compile_text(nvrtc, made.stdout, arch)
                counts[arch] += 1
                if spilled:
                    counts["spill"] += 1
                    plan = re.search(r"^//   plan    (.*)$", made.stdout, flags=re.M).group(1)
                    print(os.path.basename(path), *what, f"{registers} registers, {spilled} bytes:", plan, flush=True)
    print(dict(counts))


if __name__ == "__main__":
    main()
