module task

go 1.18
