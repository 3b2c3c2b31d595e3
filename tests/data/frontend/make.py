#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""How the files in good/ and bad/ were made; run it again only to add some. Needs NumPy, SciPy and zstd.

Every file in bad/ has a NAME.err beside it with the message that reading it must give (FILE stands for its path);
those were written by hand or checked by eye, and this script leaves them alone."""
import bz2, gzip, io, lzma, os, subprocess, tarfile, zipfile
import numpy as np
import scipy.sparse as sp

HERE = os.path.dirname(os.path.abspath(__file__))
BANNER = b"%%MatrixMarket matrix coordinate real general\n"
PATTERN = b"%%MatrixMarket matrix coordinate pattern general\n"
ARRAY = b"%%MatrixMarket matrix array real general\n"
SYMMETRIC = b"%%MatrixMarket matrix coordinate real symmetric\n"
SKEW = b"%%MatrixMarket matrix coordinate real skew-symmetric\n"
# 4 x 5, with an explicit zero and an empty row; the tests know it by heart
SMALL = BANNER + b"4 5 6\n1 1 1.5\n1 5 -2\n2 2 0\n4 1 3\n4 3 4.25\n4 5 1e-3\n"
EDGES = b"".join(b"%d %d\n" % (i * i % 37, i * 7 % 37) for i in range(40))
DENSE = np.array([[1.5, 0, 0, 0, -2], [0, 0, 0, 0, 0], [0, 0, 0, 0, 0], [3, 0, 4.25, 0, 1e-3]])


def put(name, data):
    with open(os.path.join(HERE, name), "wb") as out:
        out.write(data)


def gz(data):
    return gzip.compress(data, mtime=0)


def zst(data):
    return subprocess.run(["zstd", "-qc"], input=data, stdout=subprocess.PIPE, check=True).stdout


def xz(data):  # with a small dictionary: tests unpack it thousands of times
    return lzma.compress(data, preset=0)


def bz(data):
    return bz2.compress(data, 1)


PACKINGS = {"gz": gz, "zst": zst, "xz": xz, "bz2": bz}


def tar(members, mode="w:gz"):
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode=mode, format=tarfile.USTAR_FORMAT) as archive:
        for name, data in members:
            info = tarfile.TarInfo(name)
            info.size = len(data)
            archive.addfile(info, io.BytesIO(data))
    return out.getvalue()


def npz(compressed=False, **arrays):
    out = io.BytesIO()
    (np.savez_compressed if compressed else np.savez)(out, **arrays)
    return out.getvalue()


def scipy_npz(matrix, **options):
    out = io.BytesIO()
    sp.save_npz(out, matrix, **options)
    return out.getvalue()


def good():
    put("good/small.mtx", SMALL)
    put("good/small.mtx.gz", gz(SMALL))
    put("good/small.mtx.zst", zst(SMALL))
    put("good/small.mtx.xz", lzma.compress(SMALL))
    put("good/small.mtx.bz2", bz2.compress(SMALL))
    vector = b"%%MatrixMarket matrix array real general\n4 1\n1\n2\n3\n4\n"
    members = [("small/small_b.mtx", vector), ("small/small.mtx", SMALL), ("small/small_coord.mtx", vector)]
    put("good/small.tar.gz", tar(members))
    put("good/small.tar", tar(members, "w"))
    put("good/renamed-archive.tar.gz", tar(members))
    put("good/only-member.tar.gz", tar([("readme.txt", b"hello\n"), ("dir/other.mtx", SMALL)]))
    put("good/own-name.tar.gz", tar([("dir/first.mtx", BANNER + b"1 1 0\n"), ("dir/own-name.mtx", SMALL)]))
    put("good/two-frames.mtx.gz", gz(SMALL[:70]) + gz(SMALL[70:]))
    for suffix, pack in PACKINGS.items():
        if suffix != "gz":
            put("good/small.tar." + suffix, pack(tar(members, "w")))
        # nothing in an edge list says how long it is: only the packing notices that a part is lost
        put("good/edges.txt." + suffix, pack(EDGES))
        put("good/two-edges.txt." + suffix, pack(EDGES[:120]) + pack(EDGES[120:]))
    put("good/padded.mtx.gz", gz(SMALL) + bytes(100))
    matrix = sp.coo_matrix(([1.5, -2, 0, 3, 4.25, 1e-3], ([0, 0, 1, 3, 3, 3], [0, 4, 1, 0, 2, 4])), shape=(4, 5))
    put("good/csr.npz", scipy_npz(matrix.tocsr()))
    put("good/csc.npz", scipy_npz(matrix.tocsc(), compressed=False))
    put("good/coo.npz", scipy_npz(matrix))
    put("good/array.npz", scipy_npz(sp.csr_array(matrix)))
    csr = matrix.tocsr()
    base = dict(indices=csr.indices, indptr=csr.indptr, shape=np.array([4, 5]), data=csr.data)
    put("good/unicode-format.npz", npz(format=np.array("csr"), **base))
    wide = dict(base, indices=csr.indices.astype(np.int64), indptr=csr.indptr.astype(np.int64))
    put("good/wide-indices.npz", npz(True, format=np.array(b"csr"), **wide))
    swapped = dict(indices=csr.indices.astype(">i4"), indptr=csr.indptr.astype(">u8"), shape=np.array([4, 5], ">i8"),
                   data=csr.data.astype(">f8"))
    put("good/big-endian.npz", npz(format=np.array("csr", ">U3"), **swapped))
    unsorted = dict(base, indices=np.array([4, 0, 1, 4, 2, 0], np.int32), data=np.array([-2, 1.5, 0, 1e-3, 4.25, 3]))
    put("good/unsorted.npz", npz(format=np.array(b"csr"), **unsorted))
    ints = np.array([[2, 0, 0], [0, -3, 0], [0, 7, 1]])
    for name in ("float32", "int8", "int16", "int32", "int64"):
        put("good/type-%s.npz" % name, scipy_npz(sp.csr_matrix(ints.astype(name))))
    put("good/type-uint8.npz", scipy_npz(sp.csr_matrix(abs(ints).astype("uint8"))))
    put("good/type-bool.npz", scipy_npz(sp.csr_matrix(ints != 0)))


def bad_headers():
    bad = {
        "empty.mtx": b"",
        "only-newlines.mtx": b"\n\n\n",
        "bom-only.mtx": b"\xef\xbb\xbf",
        "no-banner.mtx": b"3 3 1\n1 1 1\n",
        "banner-glued.mtx": b"%%MatrixMarketmatrix coordinate real general\n1 1 1\n1 1 1\n",
        "banner-short.mtx": b"%%MatrixMarket matrix coordinate\n1 1 1\n1 1 1\n",
        "banner-only-word.mtx": b"%%MatrixMarket\n1 1 1\n1 1 1\n",
        "banner-no-symmetry.mtx": b"%%MatrixMarket matrix coordinate real\n1 1 1\n1 1 1\n",
        "banner-object.mtx": b"%%MatrixMarket tensor coordinate real general\n1 1 1\n1 1 1\n",
        "banner-vector.mtx": b"%%MatrixMarket vector coordinate real general\n1 1\n1 1\n",
        "banner-format.mtx": b"%%MatrixMarket matrix dense real general\n1 1\n1\n",
        "banner-field.mtx": b"%%MatrixMarket matrix coordinate quaternion general\n1 1 1\n1 1 1\n",
        "banner-symmetry.mtx": b"%%MatrixMarket matrix coordinate real triangular\n1 1 1\n1 1 1\n",
        "banner-binary.mtx": b"%%MatrixMarket matrix coordinate \x01\xff\x00x general\n1 1 1\n1 1 1\n",
        "complex.mtx": b"%%MatrixMarket matrix coordinate complex general\n2 2 2\n1 1 1 0\n2 1 3\n",
        "complex-hermitian.mtx": b"%%MatrixMarket matrix coordinate complex hermitian\n2 2 2\n2 1 0 1\n2 2 1 0.5\n",
        "complex-skew.mtx": b"%%MatrixMarket matrix coordinate complex skew-symmetric\n2 2 2\n2 1 0 1\n2 2 0 1\n",
        "complex-more.mtx": b"%%MatrixMarket matrix coordinate complex general\n2 2 1\n2 1 0 1 2\n",
        "complex-huge.mtx": b"%%MatrixMarket matrix coordinate complex general\n2 2 1\n2 1 0 1e999\n",
        "complex-array.mtx": b"%%MatrixMarket matrix array complex general\n1 2\n1 0\n2\n",
        "complex-array-hermitian.mtx": b"%%MatrixMarket matrix array complex hermitian\n2 2\n1 0\n2 1\n3 4\n",
        "pattern-array.mtx": b"%%MatrixMarket matrix array pattern general\n1 1\n",
        "pattern-skew.mtx": b"%%MatrixMarket matrix coordinate pattern skew-symmetric\n2 2 1\n2 1\n",
        "no-size.mtx": BANNER,
        "no-size-comments.mtx": BANNER + b"% a\n%\n\n% b\n",
        "size-two-numbers.mtx": BANNER + b"% c\n3 3\n1 1 1\n",
        "size-word.mtx": BANNER + b"3 three 1\n1 1 1\n",
        "size-negative.mtx": BANNER + b"-3 3 1\n1 1 1\n",
        "size-fraction.mtx": BANNER + b"3.0 3 1\n1 1 1\n",
        "size-extra.mtx": BANNER + b"3 3 1 7\n1 1 1\n",
        "size-array-extra.mtx": ARRAY + b"2 2 4\n1\n2\n3\n4\n",
        "size-rows-limit.mtx": BANNER + b"2147483648 3 1\n1 1 1\n",
        "size-cols-limit.mtx": BANNER + b"3 99999999999999999999999 1\n1 1 1\n",
        "size-entries-huge.mtx": BANNER + b"3 3 1000000000000000000\n1 1 1\n",
        "size-entries-overflow.mtx": BANNER + b"3 3 99999999999999999999999999\n1 1 1\n",
        "size-array-huge.mtx": ARRAY + b"2147483647 2147483647\n1\n",
        "size-rows-empty.mtx": BANNER + b"2147483647 3 1\n1 1 1\n",
        "symmetric-not-square.mtx": SYMMETRIC + b"3 4 1\n1 1 1\n",
        "matlab.mat": b"MATLAB 5.0 MAT-file, Platform: GLNXA64\n" + bytes(90),
        "hdf5.mat": b"\x89HDF\r\n\x1a\n" + bytes(20),
        "array.npy": b"\x93NUMPY\x01\x00" + bytes(20),
        "binary.bin": b"\x00\x01\x02\x03binary",
        "program.txt": b"\x7fELF\x02\x01\x01" + bytes(30),
    }
    return bad


def bad_entries():
    many = b"".join(b"%d 1 2.5\n" % (i + 1) for i in range(400))
    return {
        "entry-row-zero.mtx": BANNER + b"3 3 2\n1 1 1\n0 2 1\n",
        "entry-col-zero.mtx": BANNER + b"3 3 2\n1 1 1\n2 0 1\n",
        "entry-row-large.mtx": BANNER + b"3 3 2\n1 1 1\n\n4 2 1\n",
        "entry-col-large.mtx": BANNER + b"% a comment\n3 3 2\n1 1 1\n3 4 1\n",
        "entry-row-huge.mtx": BANNER + b"3 3 1\n123456789012345678901234567890 1 1\n",
        "entry-negative.mtx": BANNER + b"3 3 1\n-1 1 1\n",
        "entry-word.mtx": BANNER + b"3 3 2\n1 1 1\n1 b 1\n",
        "entry-fraction.mtx": BANNER + b"3 3 1\n1.0 1 1\n",
        "entry-no-value.mtx": BANNER + b"3 3 2\n1 1\n1 2\n",
        "entry-no-column.mtx": BANNER + b"3 3 1\n2\n",
        "entry-value-word.mtx": BANNER + b"3 3 1\n1 1 one\n",
        "entry-value-comma.mtx": BANNER + b"3 3 1\n1 1 1,5\n",
        "entry-value-exponent.mtx": BANNER + b"3 3 1\n1 1 1e\n",
        "entry-value-hex.mtx": BANNER + b"3 3 1\n1 1 0x1g\n",
        "entry-value-sign.mtx": BANNER + b"3 3 1\n1 1 --1\n",
        "entry-value-point.mtx": BANNER + b"3 3 1\n1 1 .\n",
        "entry-extra.mtx": BANNER + b"3 3 1\n1 1 1 0\n",
        "entry-binary.mtx": BANNER + b"3 3 2\n1 1 1\n1 \x00\xfe 1\n",
        "entry-in-comma.mtx": BANNER + b"3 3 1\n1,1,1\n",
        "entry-after-comment.mtx": BANNER + b"3 3 2\n% one\n1 1 1\n% two\n9 1 1\n",
        "entry-crlf.mtx": BANNER + b"3 3 2\r\n1 1 1\r\n1 9 1\r\n",
        "entry-last-line-cut.mtx": BANNER + b"3 3 2\n1 1 1\n2 2",
        "entry-line-400.mtx": BANNER + b"400 1 401\n" + many + b"400 2 1\n",
        "entry-first-of-two.mtx": BANNER + b"3 3 3\n1 1 1\n5 1 1\n1 7 x\n",
        "pattern-with-value.mtx": PATTERN + b"3 3 1\n1 1 1.0\n",
        "pattern-no-column.mtx": PATTERN + b"3 3 1\n1\n",
        "too-few.mtx": BANNER + b"3 3 3\n1 1 1\n2 2 2\n",
        "too-few-blank.mtx": BANNER + b"3 3 3\n1 1 1\n\n2 2 2\n",
        "too-few-comment.mtx": BANNER + b"3 3 2\n1 1 1\n% the rest is missing\n",
        "too-few-none.mtx": BANNER + b"3 3 3\n",
        "too-many.mtx": BANNER + b"3 3 2\n1 1 1\n% c\n\n2 2 2\n3 3 3\n1 2 3\n",
        "too-many-none.mtx": BANNER + b"3 3 0\n1 1 1\n",
        "skew-diagonal.mtx": SKEW + b"3 3 2\n2 1 1\n2 2 1\n",
        "array-too-few.mtx": ARRAY + b"2 2\n1\n2\n3\n",
        "array-too-many.mtx": ARRAY + b"2 2\n1\n2\n3\n4\n5\n",
        "array-two-a-line.mtx": ARRAY + b"2 2\n1 2\n3 4\n\n\n",
        "array-two-a-line-4.mtx": ARRAY + b"2 2\n1\n2\n3\n4 5\n",
        "array-word.mtx": ARRAY + b"2 2\n1\n2\nx\n4\n",
        "array-symmetric-too-many.mtx": b"%%MatrixMarket matrix array real symmetric\n2 2\n1\n2\n3\n4\n",
        "array-comment-short.mtx": ARRAY + b"1 2\n1\n% c\n",
        "edges-one-column.txt": b"# graph\n1\n2\n",
        "edges-four-columns.txt": b"1 2 3 4\n",
        "edges-word.txt": b"source,target\n1,2\n",
        "edges-later-word.txt": b"# FromNodeId ToNodeId\n0\t1\n1\tx\n",
        "edges-mixed-columns.txt": b"0 1\n1 2 0.5\n",
        "edges-missing-weight.txt": b"0 1 2.5\n1 2\n",
        "edges-negative.txt": b"0 1\n-1 2\n",
        "edges-id-limit.txt": b"0 1\n2147483647 2\n",
        "edges-id-gaps.txt": b"0 1\n2000000000 2\n",
        "edges-bad-weight.txt": b"0 1 0.5\n1 2 heavy\n",
        "overflow.mtx": BANNER + b"2 2 3\n1 1 1.7976931348623157e308\n1 2 inf\n2 1 1e309\n",
        "overflow-rounded.mtx": BANNER + b"2 2 2\n1 1 1.7976931348623158e308\n2 2 -1.7976931348623159e308\n",
        "overflow-hexadecimal.mtx": BANNER + b"1 2 2\n1 1 0x1.fffffffffffffp1023\n1 2 0x1p1024\n",
        "overflow-array.mtx": ARRAY + b"2 1\n-Infinity\n-.1e310\n",
        "overflow-edges.txt": b"# weights\n0 1 1e308\n1 0 1d+309\n",
        "overflow-sum.mtx": BANNER + b"3 3 4\n1 1 inf\n1 1 1e308\n3 2 1.7e308\n3 2 1.7e308\n",
        "edges-only-comments.txt": b"# nothing\n# here\n",
        "text.txt": b"Hello, world.\n",
    }


def bad_packed():
    whole = gz(SMALL * 40)
    broken = bytearray(zst(SMALL * 40))
    for i in range(20, len(broken)):
        broken[i] ^= 0x5A
    xz = lzma.compress(SMALL * 40)
    bz = bytearray(bz2.compress(SMALL * 40))
    bz[30] ^= 0xFF
    wrong = BANNER + b"3 3 2\n% c\n1 1 1\n7 1 1\n"
    return {
        "cut.mtx.gz": whole[: len(whole) // 2],
        "cut-header.mtx.gz": whole[:8],
        "corrupt.mtx.zst": bytes(broken),
        "cut.mtx.zst": zst(os.urandom(0) + SMALL * 40)[:60],
        "cut.mtx.xz": xz[: len(xz) // 2],
        "corrupt.mtx.bz2": bytes(bz),
        "empty-inside.mtx.gz": gz(b""),
        "wrong-line.mtx.gz": gz(wrong),
        "wrong-line.mtx.xz": lzma.compress(wrong),
        "no-banner.mtx.zst": zst(b"1 2 3\n"),
        "no-matrix.tar.gz": tar([("readme.txt", b"hello\n")]),
        "only-vector.tar.gz": tar([("thing/thing_b.mtx", SMALL)]),
        "two-matrices.tar.gz": tar([("a.mtx", SMALL), ("b.mtx", SMALL)]),
        "three-matrices.tar.gz": tar([("a.mtx", SMALL), ("b.mtx", SMALL), ("c.mtx", SMALL)]),
        "wrong-line.tar.gz": tar([("wrong-line/wrong-line.mtx", wrong)]),
        "cut.tar.gz": tar([("cut/cut.mtx", os.urandom(0) + bytes(range(256)) * 40)])[:120],
        "bomb.mtx.zst": zst(b"1 1 1\n" * 6_000_000),
        "twice.mtx.xz": lzma.compress(gz(SMALL)),
        "garbage.mtx.gz": gz(SMALL) + b"more",
        "garbage.mtx.xz": lzma.compress(SMALL) + b"more",
        "garbage.mtx.zst": zst(SMALL) + b"more",
        "garbage.mtx.bz2": bz2.compress(SMALL) + b"more",
    }


def bad_npz():
    csr = sp.csr_matrix(DENSE)
    base = dict(indices=csr.indices, indptr=csr.indptr, format=np.array(b"csr"), shape=np.array([4, 5]), data=csr.data)
    coo = dict(row=np.array([0, 1]), col=np.array([0, 1]), data=np.array([1.0, 2.0]), format=np.array(b"coo"),
               shape=np.array([2, 2]))

    def change(of=base, **changes):
        arrays = dict(of, **changes)
        return npz(**{key: value for key, value in arrays.items() if value is not None})

    def replace(name, data):
        out = io.BytesIO()
        with zipfile.ZipFile(out, "w") as archive, zipfile.ZipFile(io.BytesIO(npz(**base))) as source:
            for member in source.namelist():
                archive.writestr(zipfile.ZipInfo(member), data if member == name else source.read(member))
        return out.getvalue()

    good = npz(**base)
    struct = np.array([(1, 2.0)], dtype=[("a", "i4"), ("b", "f8")])
    plain = io.BytesIO()
    np.save(plain, csr.data)
    return {
        "npz-no-format.npz": change(format=None),
        "npz-no-shape.npz": change(shape=None),
        "npz-no-data.npz": change(data=None),
        "npz-no-indices.npz": change(indices=None),
        "npz-no-indptr.npz": change(indptr=None),
        "npz-no-row.npz": change(coo, row=None),
        "npz-format-number.npz": change(format=np.array(3)),
        "npz-bsr.npz": scipy_npz(sp.bsr_matrix(DENSE[:, :4])),
        "npz-dia.npz": scipy_npz(sp.dia_matrix(np.eye(3))),
        "npz-complex.npz": change(data=csr.data.astype(np.clongdouble)),
        "npz-half.npz": change(data=csr.data.astype(np.float16)),
        "npz-object.npz": change(data=np.array([None] * csr.nnz, dtype=object)),
        "npz-struct.npz": change(data=struct),
        "npz-float-indices.npz": change(indices=csr.indices.astype(float)),
        "npz-index-large.npz": change(indices=np.array([0, 5, 0, 2, 4], np.int32)),
        "npz-index-negative.npz": change(indices=np.array([0, -1, 0, 2, 4], np.int64)),
        "npz-index-wide.npz": change(indices=np.array([0, 2**40, 0, 2, 4], np.int64)),
        "npz-indptr-short.npz": change(indptr=csr.indptr[:-1]),
        "npz-indptr-down.npz": change(indptr=np.array([0, 3, 2, 2, 5], np.int32)),
        "npz-indptr-start.npz": change(indptr=np.array([1, 2, 2, 2, 5], np.int32)),
        "npz-indptr-long.npz": change(indptr=np.array([0, 2, 2, 2, 9], np.int32)),
        "npz-data-short.npz": change(data=csr.data[:-1]),
        "npz-shape-three.npz": change(shape=np.array([4, 5, 6])),
        "npz-shape-negative.npz": change(shape=np.array([-4, 5])),
        "npz-shape-large.npz": change(shape=np.array([2**31, 5])),
        "npz-shape-float.npz": change(shape=np.array([4.0, 5.0])),
        "npz-coo-lengths.npz": change(coo, col=np.array([0])),
        "npz-coo-range.npz": change(coo, row=np.array([0, 2])),
        "npz-not-numpy.npz": replace("data.npy", b"no array"),
        "npz-cut-array.npz": replace("data.npy", plain.getvalue()[:-8]),
        "npz-bad-shape.npz": replace("data.npy", plain.getvalue().replace(b"'shape': (5,)", b"'shape': (x,)")),
        "npz-huge-shape.npz": replace("data.npy", plain.getvalue().replace(b"(5,), } ", b"(9999999999,9999999999),}")),
        "npz-huge-header.npz": replace("data.npy", plain.getvalue()[:8] + b"\xff\xff" + plain.getvalue()[10:]),
        "npz-cut.npz": good[: len(good) // 2],
        "npz-empty.npz": b"PK\x05\x06" + bytes(18),
        "npz-magic-only.npz": b"PK\x03\x04",
    }


good()
for files in (bad_headers(), bad_entries(), bad_packed(), bad_npz()):
    for name, data in files.items():
        put("bad/" + name, data)
