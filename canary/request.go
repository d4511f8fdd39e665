package canary

import (
	"time"

	"github.com/proxyward/proxyward/api/v1alpha1"
	"github.com/proxyward/proxyward/internal/proxyenv"
	"github.com/proxyward/proxyward/runtimes"
)

// Request is one proof: pull this image fresh through that daemon and say which way it came.
type Request struct {
	Role  v1alpha1.CanaryRole
	Image string
	// Auth for the registry, or nil.
	Auth *RegistryAuth
	// Runtime that pulls, with its socket and registry hosts.
	Runtime runtimes.Runtime
	// MainPID of the daemon, for its process tree's sockets; 0 when it is not known.
	MainPID int
	// Environment that the daemon runs with, from which the expected route follows.
	Environment proxyenv.Environment
	// Timeout of the pull; 60 s when 0.
	Timeout time.Duration
}

// RegistryAuth is offered to one registry only.
type RegistryAuth struct {
	Username string
	Password proxyenv.Secret
}
