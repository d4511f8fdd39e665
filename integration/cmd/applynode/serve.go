//go:build linux

package main

import (
	"errors"
	"net"
	"os"
	"os/signal"
	"strings"
	"syscall"
)

// serve is a daemon of Type=notify that its proxy can break: with FAIL in it it ends, and with
// HANG it never says that it is ready.
func serve() error {
	proxy := os.Getenv("HTTPS_PROXY")
	if strings.Contains(proxy, "FAIL") {
		return errors.New("the proxy says FAIL")
	}
	stop := make(chan os.Signal, 1)
	signal.Notify(stop, syscall.SIGTERM)
	if !strings.Contains(proxy, "HANG") {
		if err := ready(); err != nil {
			return err
		}
	}
	<-stop
	return nil
}

func ready() error {
	conn, err := net.Dial("unixgram", os.Getenv("NOTIFY_SOCKET"))
	if err != nil {
		return err
	}
	_, err = conn.Write([]byte("READY=1"))
	return errors.Join(err, conn.Close())
}
