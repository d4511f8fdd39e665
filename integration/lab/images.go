//go:build linux

package lab

import (
	"archive/tar"
	"bytes"
	"context"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"runtime"
	"time"

	"github.com/google/go-containerregistry/pkg/authn"
	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
)

// CanarySize is how many bytes the layer of a canary has: incompressible, and
// in no other image.
const CanarySize = 1 << 20

// Image is an image that was pushed.
type Image struct {
	Ref    string // as a runtime asks for it
	Digest v1.Hash
	Layers []Layer
}

// Layer is one layer of an [Image].
type Layer struct {
	Digest v1.Hash
	Size   int64 // bytes on the wire
}

// Transport reaches the lab's services from the host: it knows the lab's names
// and trusts its CA. The host's proxy settings do not apply.
func (l *Lab) Transport() *http.Transport {
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(l.CA())
	addrs := map[string]string{}
	for _, h := range l.state.allHosts() {
		addrs[h.name] = h.addr.String()
	}
	dialer := &net.Dialer{Timeout: 10 * time.Second}
	return &http.Transport{
		TLSClientConfig: &tls.Config{RootCAs: pool},
		DialContext: func(ctx context.Context, network, target string) (net.Conn, error) {
			host, port, err := net.SplitHostPort(target)
			if err != nil {
				return nil, fmt.Errorf("reading target %q: %w", target, err)
			}
			if a, ok := addrs[host]; ok {
				host = a
			}
			return dialer.DialContext(ctx, network, net.JoinHostPort(host, port))
		},
	}
}

// RandomLayer makes a layer with one file of size random bytes.
func RandomLayer(size int) (v1.Layer, error) {
	content := make([]byte, size)
	if _, err := rand.Read(content); err != nil {
		return nil, fmt.Errorf("making random bytes: %w", err)
	}
	return FileLayer("proxyward/"+rand.Text(), content, 0o644)
}

// FileLayer makes a layer with one file.
func FileLayer(path string, content []byte, mode os.FileMode) (v1.Layer, error) {
	var archive bytes.Buffer
	w := tar.NewWriter(&archive)
	if err := w.WriteHeader(&tar.Header{Name: path, Mode: int64(mode.Perm()), Size: int64(len(content))}); err != nil {
		return nil, fmt.Errorf("making a layer: %w", err)
	}
	if _, err := w.Write(content); err != nil {
		return nil, fmt.Errorf("making a layer: %w", err)
	}
	if err := w.Close(); err != nil {
		return nil, fmt.Errorf("making a layer: %w", err)
	}
	layer, err := tarball.LayerFromOpener(func() (io.ReadCloser, error) {
		return io.NopCloser(bytes.NewReader(archive.Bytes())), nil
	})
	if err != nil {
		return nil, fmt.Errorf("making a layer: %w", err)
	}
	return layer, nil
}

// PushCanary pushes a new image with one layer of [CanarySize] bytes that no
// other image has.
func (l *Lab) PushCanary(ctx context.Context, registry, repository, tag string) (Image, error) {
	layer, err := RandomLayer(CanarySize)
	if err != nil {
		return Image{}, err
	}
	return l.PushImage(ctx, registry, repository, tag, layer)
}

// PushImage pushes an image made of the layers to a registry of the lab. Two
// images given the same layer share its blob.
func (l *Lab) PushImage(ctx context.Context, registry, repository, tag string, layers ...v1.Layer) (Image, error) {
	return l.push(ctx, registry, repository, tag, v1.Config{}, layers)
}

// PushProgram pushes an image that runs a static program of the host.
func (l *Lab) PushProgram(ctx context.Context, registry, repository, tag, program string, args ...string) (Image, error) {
	content, err := os.ReadFile(program)
	if err != nil {
		return Image{}, fmt.Errorf("reading the program: %w", err)
	}
	layer, err := FileLayer("program", content, 0o755)
	if err != nil {
		return Image{}, err
	}
	return l.push(ctx, registry, repository, tag, v1.Config{Entrypoint: append([]string{"/program"}, args...)}, []v1.Layer{layer})
}

func (l *Lab) push(ctx context.Context, registry, repository, tag string, cfg v1.Config, layers []v1.Layer) (Image, error) {
	r := l.Registry(registry)
	if r == nil {
		return Image{}, fmt.Errorf("pushing %s:%s: no registry %q", repository, tag, registry)
	}
	if registry == Mirror {
		return Image{}, fmt.Errorf("pushing %s:%s: the mirror takes none: push to %q", repository, tag, External)
	}
	img, err := mutate.AppendLayers(empty.Image, layers...)
	if err != nil {
		return Image{}, fmt.Errorf("making image %s:%s: %w", repository, tag, err)
	}
	img, err = configure(img, cfg)
	if err != nil {
		return Image{}, fmt.Errorf("making image %s:%s: %w", repository, tag, err)
	}
	ref, err := name.NewTag(r.Host+"/"+repository+":"+tag, name.StrictValidation)
	if err != nil {
		return Image{}, fmt.Errorf("naming image %s:%s: %w", repository, tag, err)
	}
	transport := l.Transport()
	defer transport.CloseIdleConnections()
	auth := authn.Anonymous
	if r.User != "" {
		auth = &authn.Basic{Username: r.User, Password: r.Password}
	}
	if err := remote.Write(ref, img, remote.WithContext(ctx), remote.WithTransport(transport), remote.WithAuth(auth)); err != nil {
		return Image{}, fmt.Errorf("pushing %s: %w", ref, err)
	}
	return describe(ref.String(), img)
}

// configure gives the image a platform, without which runtimes refuse it.
func configure(img v1.Image, cfg v1.Config) (v1.Image, error) {
	file, err := img.ConfigFile()
	if err != nil {
		return nil, err
	}
	file = file.DeepCopy()
	file.OS, file.Architecture, file.Config = "linux", runtime.GOARCH, cfg
	return mutate.ConfigFile(img, file)
}

func describe(ref string, img v1.Image) (Image, error) {
	digest, err := img.Digest()
	if err != nil {
		return Image{}, fmt.Errorf("describing %s: %w", ref, err)
	}
	manifest, err := img.Manifest()
	if err != nil {
		return Image{}, fmt.Errorf("describing %s: %w", ref, err)
	}
	out := Image{Ref: ref, Digest: digest}
	for _, d := range manifest.Layers {
		out.Layers = append(out.Layers, Layer{Digest: d.Digest, Size: d.Size})
	}
	return out, nil
}

const (
	pauseRepository = "lab/pause"
	pauseTag        = "1"
)

// PauseRef is the sandbox image of the nodes.
func (l *Lab) PauseRef() string {
	return l.Registry(Internal).Host + "/" + pauseRepository + ":" + pauseTag
}

func (l *Lab) pushPause(ctx context.Context) error {
	_, err := l.PushProgram(ctx, Internal, pauseRepository, pauseTag, l.state.helper("pause"))
	return err
}
