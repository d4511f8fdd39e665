package canary

import (
	"crypto/x509"
	"time"

	"github.com/proxyward/proxyward/api/v1alpha1"
	"github.com/proxyward/proxyward/internal/proxyenv"
	"github.com/proxyward/proxyward/runtimes"
)

// DefaultPullTimeout bounds a pull for which no timeout was given: the CRI has none of its own.
const DefaultPullTimeout = 60 * time.Second

// Request is one proof: pull this image fresh through that daemon and say which way it came.
type Request struct {
	// Role decides the route that the registry's own bytes are expected by: Internal direct,
	// External by the proxy.
	Role  v1alpha1.CanaryRole
	Image string
	// Auth for the registry, or nil.
	Auth *RegistryAuth
	// Runtime that pulls, with its socket and registry hosts.
	Runtime runtimes.Runtime
	// MainPID of the daemon, for its process tree's sockets; 0 when it is not known, and then the
	// route is unknown too.
	MainPID int
	// Environment that the daemon runs with: its proxies are what bytes may come through.
	Environment proxyenv.Environment
	// Timeout of the pull; DefaultPullTimeout when 0.
	Timeout time.Duration
	// CA holds PEM certificates that the daemon trusts besides its host's Roots, and Roots those
	// (nil for the calling process's system). They serve the walk that explains a failure.
	CA    []byte
	Roots *x509.CertPool
	// Resolver of the daemon's names; nil for the calling process's.
	Resolver Resolver
}

// RegistryAuth is offered to one registry only.
type RegistryAuth struct {
	Username string
	Password proxyenv.Secret
}
