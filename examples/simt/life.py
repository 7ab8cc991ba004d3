"""Conway's game of life on a torus: a launch for each generation, the two boards in turn."""

import numpy as np
from picokernel import simt


@simt.jit
def generation(board, following):
    j, i = simt.grid(2)
    rows, columns = board.shape
    if i < rows and j < columns:
        neighbours = 0
        for di in range(-1, 2):
            for dj in range(-1, 2):
                if di != 0 or dj != 0:
                    neighbours += board[(i + di) % rows, (j + dj) % columns]
        lives = neighbours == 3 or (neighbours == 2 and board[i, j] == 1)
        following[i, j] = 1 if lives else 0


def expected(board):
    around = [(di, dj) for di in (-1, 0, 1) for dj in (-1, 0, 1) if (di, dj) != (0, 0)]
    neighbours = sum(np.roll(board, shift, (0, 1)) for shift in around)
    return ((neighbours == 3) | ((neighbours == 2) & (board == 1))).astype(board.dtype)


def main(n=256, generations=10):
    board = np.random.default_rng(0).integers(0, 2, (n, n + 7), np.uint8)
    following, plain = np.empty_like(board), board.copy()
    grid = -(-board.shape[1] // 16), -(-n // 16)
    for _ in range(generations):
        generation[grid, (16, 16)](board, following)
        board, following = following, board
        plain = expected(plain)
    np.testing.assert_array_equal(board, plain)
    print(f"life: {generations} generations of {n} x {n + 7} cells agree with NumPy's")


if __name__ == "__main__":
    main()
