// SPDX-License-Identifier: Apache-2.0
/* Small matrices of every shape, as cb_matrix_generate takes them. */
#ifndef CBGEN_TESTS_SHAPES_H
#define CBGEN_TESTS_SHAPES_H

static const char *const shapes[] = {
    /* nothing, or nearly */
    "empty,rows=0,cols=0",
    "empty,rows=0,cols=7",
    "empty,rows=7,cols=0",
    "empty,rows=1,cols=1",
    "empty,rows=100,cols=70",
    "diagonal,n=1",
    "one_row,cols=1",
    "one_row,cols=17",
    "one_row,cols=1000",
    "one_column,rows=17",
    "one_column,rows=1000",
    "dense_row,n=300,row=150",
    "dense_row,n=129,row=128",
    "dense_column,n=300,col=299",
    "arrow,n=200,width=3",
    /* one below, at and above the sizes of panels and thread blocks */
    "diagonal,n=15",
    "diagonal,n=16",
    "diagonal,n=17",
    "random,rows=127,cols=129,density=0.06",
    "random,rows=128,cols=128,density=0.06",
    "random,rows=129,cols=127,density=0.06",
    "random,rows=255,cols=31,density=0.1",
    "random,rows=257,cols=33,density=0.1",
    /* sub-blocks with exactly so many nonzeros */
    "random_exact,block_nnz=1",
    "random_exact,block_nnz=7",
    "random_exact,block_nnz=8",
    "random_exact,block_nnz=9",
    "random_exact,block_nnz=31",
    "random_exact,block_nnz=32",
    "random_exact,block_nnz=33",
    "random_exact,block_nnz=127,blocks_r=3",
    "random_exact,block_nnz=128,blocks_r=3",
    "random_exact,block_nnz=129,blocks_r=3",
    "random_exact,block_nnz=255,blocks_r=3",
    "random_exact,block_nnz=256,blocks_r=3",
    "random_exact,block_nnz=255,blocks_r=3,cut_rows=5,cut_cols=3",
    "random_exact,block_nnz=40,blocks_r=9,blocks_c=2,cut_rows=1,cut_cols=15",
    /* every density */
    "random,rows=150,cols=170,density=0.001",
    "random,rows=150,cols=170,density=0.01",
    "random,rows=150,cols=170,density=0.1",
    "random,rows=70,cols=90,density=0.3",
    "random,rows=70,cols=90,density=0.6",
    "random,rows=70,cols=90,density=0.95",
    "dense,rows=50,cols=40",
    /* structures */
    "tridiagonal,n=130",
    "stencil5,n=12",
    "stencil9,n=9",
    "stencil7,n=5",
    "stencil27,n=4",
    "fe3,n=3",
    "road,n=16",
    "rmat,scale=8,edge_factor=6",
    "diagonals,n=140,count=7,spread=60,fill=0.7",
    "band,n=200,half=30,per_row=9",
    "band,n=256,half=20,per_row=9", /* whole thread blocks of equal runs */
    "uniform,n=180,per_row=5",
    "powerlaw,rows=150,cols=400,max=350,min=0",
    "block,blocks_r=20,blocks_c=20,r=3,c=3,per_row=4,fill=0.9",
    "hypersparse,rows=900,cols=900,keep=0.02,per_row=3",
    "checker,rows=50,cols=60",
    "upper,n=60",
    "explicit_zeros,rows=90,cols=90,density=0.1,zeros=0.4",
    "staircase,n=70",
    "long_row,rows=120,cols=3000,per_row=3,long_rows=2,long_length=2500",
};

#endif
