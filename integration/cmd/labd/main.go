//go:build linux

// Command labd holds the small servers that run inside a lab's network: a file
// server that plays a blob host, a token realm, and proxies with faults. The lab
// starts it; people have no use for it.
package main

import (
	"crypto/tls"
	"fmt"
	"net/http"
	"os"
	"time"

	"github.com/spf13/cobra"

	"github.com/proxyward/proxyward/integration/internal/tokenrealm"
)

func main() {
	root := &cobra.Command{Use: "labd", Short: "servers inside a lab", SilenceUsage: true}
	root.AddCommand(filesCommand(), tokenCommand(), faultCommand())
	if err := root.Execute(); err != nil {
		os.Exit(1)
	}
}

type tlsServer struct{ listen, cert, key string }

func (s *tlsServer) flags(cmd *cobra.Command) {
	cmd.Flags().StringVar(&s.listen, "listen", "", "address and port to serve at")
	cmd.Flags().StringVar(&s.cert, "cert", "", "file of the certificate")
	cmd.Flags().StringVar(&s.key, "key", "", "file of the certificate's key")
}

func (s *tlsServer) serve(h http.Handler) error {
	logged := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		fmt.Printf("%s %s %s %s\n", time.Now().UTC().Format(time.RFC3339Nano), r.RemoteAddr, r.Method, r.URL.Path)
		h.ServeHTTP(w, r)
	})
	server := &http.Server{Addr: s.listen, Handler: logged, ReadHeaderTimeout: 10 * time.Second}
	return server.ListenAndServeTLS(s.cert, s.key)
}

func filesCommand() *cobra.Command {
	var s tlsServer
	var dir string
	cmd := &cobra.Command{
		Use: "files", Short: "serve a folder over https", Args: cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			return s.serve(http.FileServer(http.Dir(dir)))
		},
	}
	s.flags(cmd)
	cmd.Flags().StringVar(&dir, "dir", "", "folder to serve")
	return cmd
}

func tokenCommand() *cobra.Command {
	var s tlsServer
	var issuer, signCert, signKey string
	cmd := &cobra.Command{
		Use: "token", Short: "serve registry tokens over https", Args: cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			signer, err := tls.LoadX509KeyPair(signCert, signKey)
			if err != nil {
				return fmt.Errorf("reading the signing key: %w", err)
			}
			return s.serve(tokenrealm.Realm{Issuer: issuer, Signer: signer, Now: time.Now})
		},
	}
	s.flags(cmd)
	cmd.Flags().StringVar(&issuer, "issuer", "", "issuer named in the tokens")
	cmd.Flags().StringVar(&signCert, "sign-cert", "", "file of the certificate of the signing key")
	cmd.Flags().StringVar(&signKey, "sign-key", "", "file of the signing key")
	return cmd
}
