package canary

import "fmt"

// FailureKind tells failures on the way to a registry apart, each with a fix of its own.
type FailureKind string

// The kinds. Those of the proxy come first, in the order in which they are met.
const (
	FailBadImage          FailureKind = "BadImage"          // the image's name does not parse
	FailProxyDNS          FailureKind = "ProxyDNS"          // the proxy's name does not resolve
	FailProxyConnect      FailureKind = "ProxyConnect"      // no TCP connection to the proxy
	FailProxyTimeout      FailureKind = "ProxyTimeout"      // the proxy does not answer in time
	FailProxyNotHTTP      FailureKind = "ProxyNotHTTP"      // what answers is no HTTP proxy
	FailProxyIsTLS        FailureKind = "ProxyIsTLS"        // the proxy speaks only TLS, the URL says http
	FailProxyIsPlain      FailureKind = "ProxyIsPlain"      // the proxy speaks no TLS, the URL says https
	FailProxyUntrusted    FailureKind = "ProxyUntrusted"    // the proxy's own certificate is not trusted
	FailProxyAuthRequired FailureKind = "ProxyAuthRequired" // 407
	FailProxyForbidden    FailureKind = "ProxyForbidden"    // 403 to the CONNECT
	FailProxyUpstream     FailureKind = "ProxyUpstream"     // 502, 503, 504: the proxy cannot reach the target
	FailProxyRefused      FailureKind = "ProxyRefused"      // another refusal of the CONNECT
	FailTLSIntercepted    FailureKind = "TLSIntercepted"    // unknown issuer behind a proxy
	FailTLSUnknownCA      FailureKind = "TLSUnknownCA"      // unknown issuer on a direct way
	FailTLSInvalid        FailureKind = "TLSInvalid"        // wrong name, expired, or otherwise invalid
	FailRegistryDNS       FailureKind = "RegistryDNS"
	FailRegistryConnect   FailureKind = "RegistryConnect"
	FailRegistryTimeout   FailureKind = "RegistryTimeout"
	FailRegistryIsPlain   FailureKind = "RegistryIsPlain" // https was asked of something that speaks no TLS
	FailRegistryAuth      FailureKind = "RegistryAuth"    // 401, 403
	FailNotFound          FailureKind = "NotFound"        // 404
	FailRateLimited       FailureKind = "RateLimited"     // 429
	FailRegistryError     FailureKind = "RegistryError"   // 5xx
	FailRegistryAnswer    FailureKind = "RegistryAnswer"  // an answer that is none of a registry
	FailBlobMismatch      FailureKind = "BlobMismatch"    // other bytes than the digest says
)

// Failure is what stopped the way to a registry.
type Failure struct {
	Kind FailureKind
	// Hop is the host[:port] at which it happened.
	Hop string
	// Detail is what was found, without secrets.
	Detail string
	// Fix is what to do about it.
	Fix string
}

// Error implements error.
func (f *Failure) Error() string {
	return fmt.Sprintf("reaching %q: %s: %s", f.Hop, f.Detail, f.Fix)
}

// Inconclusive says that the failure tells nothing about the proxy settings: the other side is
// overloaded or broken for now.
func (f *Failure) Inconclusive() bool {
	switch f.Kind {
	case FailRateLimited, FailRegistryError, FailProxyUpstream:
		return true
	default:
		return false
	}
}

// fix says what to do about a kind of failure.
func fix(kind FailureKind) string {
	switch kind {
	case FailBadImage:
		return "write the image as registry/repository:tag or registry/repository@sha256:…"
	case FailProxyDNS:
		return "correct the host in the profile's proxy URL, or the name servers of this node"
	case FailProxyConnect:
		return "check host and port in the profile's proxy URL, and that a firewall lets this node reach them"
	case FailProxyTimeout:
		return "check that the proxy runs, that the port is its HTTP port, and that no firewall drops the packets"
	case FailProxyNotHTTP:
		return "check the port in the profile's proxy URL: what listens there is no HTTP proxy"
	case FailProxyIsTLS:
		return "write https:// in the profile's proxy URL, or use the proxy's plain port"
	case FailProxyIsPlain:
		return "write http:// in the profile's proxy URL, or use the proxy's TLS port"
	case FailProxyUntrusted:
		return "put the certificate authority of the proxy's own certificate into trustedCA"
	case FailProxyAuthRequired:
		return "check username and password in the Secret that credentialsSecretName names; " +
			"they are kept raw there, and only Basic authentication can be used"
	case FailProxyForbidden:
		return "have the proxy's rules allow CONNECT to this host and port from this node"
	case FailProxyUpstream:
		return "check from the proxy that the host resolves and answers; it is tried again later"
	case FailProxyRefused:
		return "see the proxy's log for this request"
	case FailTLSIntercepted:
		return "if the proxy intercepts TLS, put its certificate authority into trustedCA; " +
			"if the registry has a private one, put that there"
	case FailTLSUnknownCA:
		return "put the registry's certificate authority into trustedCA or the node's own store"
	case FailTLSInvalid:
		return "have the certificate renewed for this name, and check this node's clock"
	case FailRegistryDNS:
		return "check the registry's name and this node's name servers; if only the proxy can resolve it, " +
			"it must not be in NO_PROXY"
	case FailRegistryConnect, FailRegistryTimeout:
		return "check that the registry runs and is reachable this way; if it is reachable only the other way, " +
			"correct NO_PROXY"
	case FailRegistryIsPlain:
		return "configure the runtime to use http for this registry, or have the registry serve TLS"
	case FailRegistryAuth:
		return "check the canary's pull secret: it must name this registry and may read this repository"
	case FailNotFound:
		return "push the canary image, or correct its name in the profile"
	case FailRateLimited:
		return "use a pull secret or a mirror; it is tried again later"
	case FailRegistryError:
		return "see the registry's log; it is tried again later"
	case FailBlobMismatch:
		return "something on the way changes content: exempt this host from content filtering"
	default:
		return "check that a container registry answers at this address"
	}
}

func newFailure(kind FailureKind, hop, detail string) *Failure {
	return &Failure{Kind: kind, Hop: hop, Detail: detail, Fix: fix(kind)}
}
