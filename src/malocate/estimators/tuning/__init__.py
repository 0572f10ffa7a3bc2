"""The fits that `LowRankLeastSquares` chooses from, and the choice by held-out entries."""
