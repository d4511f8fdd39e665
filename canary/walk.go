package canary

import (
	"cmp"
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/google/go-containerregistry/pkg/authn"
	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/v1/remote/transport"

	"github.com/proxyward/proxyward/api/v1alpha1"
	"github.com/proxyward/proxyward/internal/proxyenv"
)

// DefaultWalkTimeout bounds a walk for which no timeout was given.
const DefaultWalkTimeout = 45 * time.Second

// DefaultPatience with one step of a walk for which none was given.
const DefaultPatience = 10 * time.Second

// WalkRequest asks what a pull of an image would meet under an environment.
type WalkRequest struct {
	Image string
	// Environment whose proxies and NO_PROXY decide each hop.
	Environment proxyenv.Environment
	// Auth for the image's registry, or nil. It is offered to no mirror.
	Auth *RegistryAuth
	// CA holds PEM certificates that are trusted besides Roots.
	CA []byte
	// Roots are the host's own authorities; nil for those of the calling process's system.
	Roots *x509.CertPool
	// Hosts are the URLs that the runtime sends this registry's pulls to, in its order; empty for
	// the registry alone, by https.
	Hosts []string
	// Resolver of names; nil for the host's.
	Resolver Resolver
	// Timeout of the walk; DefaultWalkTimeout when 0.
	Timeout time.Duration
	// Patience with one step (a connection, a handshake, an answer's first byte); DefaultPatience
	// when 0.
	Patience time.Duration
}

// Purpose of one hop.
type Purpose string

// The purposes, in the order in which a pull has them.
const (
	PurposeRegistry Purpose = "registry" // the registry's front door, /v2/
	PurposeToken    Purpose = "token"    // the realm that gives tokens, often another host
	PurposeManifest Purpose = "manifest"
	PurposeBlob     Purpose = "blob"
	PurposeRedirect Purpose = "redirect" // where an answer sent us, often another host
)

// Hop is one request of a walk.
type Hop struct {
	Purpose Purpose
	// URL without query and user, and its Host[:port].
	URL, Host string
	// Route that the environment gives it: Proxy, Direct, or Mirror for a direct mirror.
	Route v1alpha1.Route
	// Why it goes that way, naming the NO_PROXY entry that decided.
	Why string
	// Proxy is the proxy's host:port, or "" when the request went direct.
	Proxy string
	// Remote address:port of the connection, or "" when there was none.
	Remote string
	// Status of the answer, 0 when there was none.
	Status int
	// Issuer of the certificate that was shown, or "".
	Issuer string
	Took   time.Duration
	// Failure at this hop, or nil.
	Failure *Failure

	// hostPort is Host with its port even where that is the scheme's own.
	hostPort string
}

// WalkReport is what a walk met.
type WalkReport struct {
	Hops []Hop
	// Failure that ended the walk; nil when bytes of a layer arrived.
	Failure *Failure
	// Digest of the manifest and Size of its layers in bytes, as far as the walk came.
	Digest string
	Size   int64
}

// Walk goes the way of a pull from the calling process, hop by hop: registry, token, manifest,
// redirects, a layer. It tells nothing of a daemon, whose pulls only Prove sees; it tells whether
// proxies, registries and certificates would serve one. It never fails otherwise than in its
// report.
func Walk(ctx context.Context, request WalkRequest) WalkReport {
	ctx, cancel := context.WithTimeout(ctx, cmp.Or(request.Timeout, DefaultWalkTimeout))
	defer cancel()
	request.Patience = cmp.Or(request.Patience, DefaultPatience)
	if request.Resolver == nil {
		request.Resolver = net.DefaultResolver
	}
	ref, err := name.ParseReference(request.Image)
	if err != nil {
		return WalkReport{Failure: newFailure(FailBadImage, request.Image, err.Error())}
	}
	hosts := request.Hosts
	if len(hosts) == 0 {
		hosts = []string{"https://" + registryHost(ref)}
	}
	var report WalkReport
	for _, host := range hosts {
		w, failure := newWalker(request, ref, host)
		if failure == nil {
			failure = w.walk(ctx)
			report.Hops = append(report.Hops, w.recorder.taken()...)
			report.Digest, report.Size = w.digest, w.size
		}
		if report.Failure = failure; failure == nil {
			break
		}
	}
	return report
}

// walker walks one image at one host.
type walker struct {
	ref      name.Reference
	base     *url.URL // ends in the path that stands for /v2
	mirror   bool
	auth     authn.Authenticator
	recorder *recorder
	stage    Purpose
	digest   string
	size     int64
}

func newWalker(request WalkRequest, ref name.Reference, host string) (*walker, *Failure) {
	base, err := url.Parse(host)
	if err != nil || base.Host == "" || (base.Scheme != "https" && base.Scheme != "http") {
		return nil, newFailure(FailBadImage, host, "the runtime's configuration names it as a registry host, and it is no URL")
	}
	if path := strings.TrimSuffix(base.Path, "/"); strings.HasPrefix(path+"/", "/v2/") || strings.HasSuffix(path, "/v2") {
		base.Path = path
	} else {
		base.Path = path + "/v2"
	}
	w := &walker{ref: ref, base: base, mirror: base.Host != registryHost(ref), auth: authn.Anonymous, stage: PurposeRegistry}
	if request.Auth != nil && !w.mirror {
		w.auth = authn.FromConfig(authn.AuthConfig{Username: request.Auth.Username, Password: request.Auth.Password.Reveal()})
	}
	w.recorder = &recorder{
		matcher:  proxyenv.NewMatcher(request.Environment),
		dial:     dialer(request.Resolver, request.Patience),
		redact:   redactor(request.Environment, request.Auth),
		patience: request.Patience,
		purpose:  w.purpose, refuse: w.refuse, rewrite: w.rewrite,
	}
	if w.mirror {
		w.recorder.mirror = base.Host
	}
	roots, err := trust(request.Roots, request.CA)
	if err != nil {
		return nil, newFailure(FailTLSUnknownCA, host, err.Error())
	}
	w.recorder.next = newTransport(w.recorder, roots)
	return w, nil
}

// registryHost returns the host at which an image's own registry is asked. Docker Hub's is another
// than its name.
func registryHost(ref name.Reference) string {
	if host := ref.Context().RegistryStr(); host != name.DefaultRegistry {
		return host
	}
	return "registry-1.docker.io"
}

// trust returns roots, or the system's, and the certificates of ca.
func trust(roots *x509.CertPool, ca []byte) (*x509.CertPool, error) {
	if roots == nil {
		system, err := x509.SystemCertPool()
		if err != nil {
			return nil, fmt.Errorf("reading the system's certificate authorities: %w", err)
		}
		roots = system
	}
	if len(ca) == 0 {
		return roots, nil
	}
	roots = roots.Clone()
	if !roots.AppendCertsFromPEM(ca) {
		return nil, errors.New("reading the trusted CA: it holds no PEM certificate")
	}
	return roots, nil
}

// purpose of a request: its stage while it stays at the registry's own paths, else where the
// registry sent us.
func (w *walker) purpose(req *http.Request) Purpose {
	if req.URL.Host == w.base.Host && strings.HasPrefix(req.URL.Path, "/v2/") {
		return w.stage
	}
	if w.stage == PurposeRegistry {
		return PurposeToken
	}
	return PurposeRedirect
}

// refuse keeps to the scheme that the runtime uses: the library would try plain HTTP at private
// addresses, and say of it what no runtime would see.
func (w *walker) refuse(u *url.URL) error {
	if u.Host == w.base.Host && u.Scheme != w.base.Scheme && strings.HasPrefix(u.Path, "/v2/") {
		return fmt.Errorf("asking %q by %s: the runtime uses %s", u.Host, u.Scheme, w.base.Scheme)
	}
	return nil
}

// rewrite gives a request the host's own path, and names the registry to a mirror as containerd
// does.
func (w *walker) rewrite(req *http.Request) *http.Request {
	if req.URL.Host != w.base.Host || !strings.HasPrefix(req.URL.Path, "/v2/") {
		return req
	}
	out := req.Clone(req.Context())
	out.URL.Path = w.base.Path + strings.TrimPrefix(req.URL.Path, "/v2")
	if w.mirror {
		query := out.URL.Query()
		query.Set("ns", w.ref.Context().RegistryStr())
		out.URL.RawQuery = query.Encode()
	}
	return out
}

// walk goes from the front door to a layer's bytes.
func (w *walker) walk(ctx context.Context) *Failure {
	options := []name.Option{name.StrictValidation}
	if w.base.Scheme == "http" {
		options = append(options, name.Insecure)
	}
	registry, err := name.NewRegistry(w.base.Host, options...)
	if err != nil {
		return newFailure(FailBadImage, w.base.Host, err.Error())
	}
	authorized, err := transport.NewWithContext(ctx, registry, w.auth, w.recorder, []string{w.ref.Scope(transport.PullScope)})
	if err != nil {
		return w.failed(err)
	}
	client := &http.Client{Transport: authorized}
	w.stage = PurposeManifest
	manifest, failure := w.manifest(ctx, client)
	if failure != nil {
		return failure
	}
	w.stage = PurposeBlob
	return w.blob(ctx, client, manifest)
}

// failed returns the failure of the last hop, or one made of err where that looked right.
func (w *walker) failed(err error) *Failure {
	if failure := w.recorder.last(); failure != nil {
		return failure
	}
	failure := newFailure(FailRegistryAnswer, w.base.Host, w.recorder.redact(err.Error()))
	w.recorder.fail(failure)
	return failure
}
