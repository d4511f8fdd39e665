module github.com/proxyward/proxyward

go 1.26.0
