package v1alpha1

// Node condition types, written by the controller alone.
const (
	// ConditionInSync is True when every targeted daemon runs with exactly the resolved environment.
	ConditionInSync = "RuntimeProxyInSync"
	// ConditionVerified is True when the canaries were pulled fresh, each by its expected route.
	ConditionVerified = "RuntimeProxyVerified"
)

// Reasons of RuntimeProxyInSync.
const (
	ReasonInSync          = "InSync"
	ReasonFilesDrifted    = "FilesDrifted"
	ReasonReloadNeeded    = "ReloadNeeded"
	ReasonRestartNeeded   = "RestartNeeded"
	ReasonOverridden      = "Overridden"
	ReasonContested       = "Contested"
	ReasonProfileConflict = "ProfileConflict"
	ReasonRolledBack      = "RolledBack"
	ReasonAgentSilent     = "AgentSilent"
	ReasonFrozen          = "Frozen"
	// ReasonShadowed is a finding, not drift: another file names a proxy and loses to ours.
	ReasonShadowed = "Shadowed"
	// ReasonForeign is a finding, not drift: somebody's setting that Proxyward leaves alone takes
	// part in what the daemon does (SSL_CERT_FILE).
	ReasonForeign = "Foreign"
	// ReasonUnreadable is a finding: a layer could not be observed, so nothing is said of it.
	ReasonUnreadable = "Unreadable"
)

// Reasons of RuntimeProxyVerified.
const (
	ReasonVerified           = "Verified"
	ReasonInternalPullFailed = "InternalPullFailed"
	ReasonExternalPullFailed = "ExternalPullFailed"
	ReasonWrongRoute         = "WrongRoute"
	ReasonNeverRun           = "NeverRun"
	ReasonInconclusive       = "Inconclusive"
)

// Names on objects.
const (
	// GroupName of the API.
	GroupName = "proxyward.dev"
	// ProfileFinalizer keeps a deleted profile until its nodes are clean.
	ProfileFinalizer = "proxyward.dev/nodes-clean"
	// CordonAnnotation marks a cordon as ours; its value is the attempt.
	CordonAnnotation = "proxyward.dev/cordoned-for"
)
