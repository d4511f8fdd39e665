package profilefile

import (
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/proxyward/proxyward/internal/proxyenv"
)

// maxCredential is the size in bytes of the largest username or password: encoded threefold it must
// fit into one environment variable with room for the rest.
const maxCredential = 32 << 10

// ReadCredentials reads a proxy's credentials from a folder with the files username and password,
// as Kubernetes mounts a Secret: the bytes of each file are the value, raw, not percent-encoded.
//
// A control character is refused, a newline at the end among them, which most editors and echo add
// and no mounted Secret has: it is far more often a slip than part of a password. An empty username
// is refused; an empty password is not.
func ReadCredentials(dir string) (*proxyenv.Credentials, error) {
	username, err := readCredential(dir, "username")
	if err != nil {
		return nil, err
	}
	if username == "" {
		return nil, fmt.Errorf("reading credentials: %q is empty; write the user's name into it", filepath.Join(dir, "username"))
	}
	password, err := readCredential(dir, "password")
	if err != nil {
		return nil, err
	}
	return proxyenv.NewCredentials(username, password), nil
}

func readCredential(dir, name string) (string, error) {
	path := filepath.Join(dir, name)
	f, err := os.Open(path)
	if err != nil {
		return "", fmt.Errorf("reading credentials: %w; the folder must hold the files username and password", err)
	}
	defer f.Close()
	raw, err := io.ReadAll(io.LimitReader(f, maxCredential+1))
	if err != nil {
		return "", fmt.Errorf("reading credentials: %w", err)
	}
	if len(raw) > maxCredential {
		return "", fmt.Errorf("reading credentials: %q has more than %d bytes, which is no %s", path, maxCredential, name)
	}
	for i, c := range raw {
		if c >= 0x20 && c != 0x7f {
			continue
		}
		if c == '\n' && i == len(raw)-1 {
			return "", fmt.Errorf("reading credentials: %q ends with a newline; write the %s without one (printf %%s instead of echo, or kubectl create secret --from-literal)", path, name)
		}
		return "", fmt.Errorf("reading credentials: byte %d of %q is a control character; write the %s as the proxy's administrator gave it", i+1, path, name)
	}
	return string(raw), nil
}
