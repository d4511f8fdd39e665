package v1alpha1

// Limit is a bound that the schema of a CRD itself enforces, without CEL. The markers on the types
// put it there; Validate needs it for profiles that no API server has seen, and a test holds the
// two together.
//
// +kubebuilder:object:generate=false
type Limit struct {
	// Path as in Rule.
	Path string
	// Required fields must be present and, being texts, not empty.
	Required bool
	// Enum lists the only values, when there are any.
	Enum []string
	// MaxItems of a list and MaxLength of a text in Unicode characters; 0 is no bound.
	MaxItems, MaxLength int
	// Minimum and Maximum of a number; nil is no bound.
	Minimum, Maximum *int32
	// Unique lists hold each value once; UniqueBy names the key where items are objects.
	Unique   bool
	UniqueBy string
	// Unmarked types are not ours, or take no markers: the generator of the CRDs writes their
	// limits into the schema.
	Unmarked bool
}

// Limits returns the limits on a profile's spec.
func Limits() []Limit {
	limits := []Limit{
		{Path: "spec.nodeSelector", Required: true},
		{Path: "spec.controlPlane", Enum: texts(ControlPlaneExclude, ControlPlaneLast)},
		{Path: "spec.proxy.http", MaxLength: 2048},
		{Path: "spec.proxy.https", MaxLength: 2048},
		{Path: "spec.proxy.credentialsSecretName", MaxLength: 253},
		{Path: "spec.proxy.trustedCA.configMapName", Required: true, MaxLength: 253},
		{Path: "spec.proxy.trustedCA.key", MaxLength: 253},
		{Path: "spec.noProxy.entries", MaxItems: 2000, UniqueBy: "value"},
		{Path: "spec.noProxy.entries[].value", Required: true, MaxLength: 253},
		{Path: "spec.noProxy.entries[].reason", MaxLength: 253},
		{Path: "spec.noProxy.exclude", MaxItems: 100, Unique: true},
		{Path: "spec.noProxy.exclude[]", MaxLength: 253},
		{Path: "spec.cluster.domain", MaxLength: 253},
		{Path: "spec.cluster.apiServer", MaxLength: 260},
		{Path: "spec.cluster.cloud", Enum: texts(CloudNone, CloudAWS, CloudAzure, CloudGCP, CloudOpenStack)},
		{Path: "spec.cluster.serviceCIDRs", MaxItems: 64},
		{Path: "spec.cluster.podCIDRs", MaxItems: 64},
		{Path: "spec.cluster.nodeCIDRs", MaxItems: 256},
		{Path: "spec.registries.internal", MaxItems: 100, Unique: true},
		{Path: "spec.registries.internal[]", MaxLength: 260},
		{Path: "spec.targets", MaxItems: 8, Unique: true},
		{Path: "spec.targets[]", Enum: texts(TargetContainerd, TargetCRIO, TargetDocker, TargetKubelet, TargetK3s, TargetRKE2, TargetSystem)},
		{Path: "spec.drift", Enum: texts(DriftRepair, DriftReport)},
		{Path: "spec.rollout.firstNodes", Minimum: ptr(0), Maximum: ptr(100)},
		{Path: "spec.rollout.maxFailures", Minimum: ptr(1)},
		{Path: "spec.rollout.drain", Enum: texts(DrainAuto, DrainNever, DrainAlways)},
		{Path: "spec.rollout.windows", MaxItems: 32},
		{Path: "spec.rollout.windows[].days", MaxItems: 7, Unique: true},
		{Path: "spec.rollout.windows[].days[]", Enum: texts(Monday, Tuesday, Wednesday, Thursday, Friday, Saturday, Sunday)},
		{Path: "spec.rollout.windows[].start", Required: true, MaxLength: 5},
		{Path: "spec.rollout.windows[].timeZone", MaxLength: 64},
	}
	for _, path := range []string{"spec.cluster.serviceCIDRs[]", "spec.cluster.podCIDRs[]", "spec.cluster.nodeCIDRs[]"} {
		limits = append(limits, Limit{Path: path, MaxLength: 64})
	}
	for _, path := range []string{"spec.canary.internal", "spec.canary.external"} {
		limits = append(limits,
			Limit{Path: path + ".image", Required: true, MaxLength: 512},
			Limit{Path: path + ".pullSecretName", MaxLength: 253})
	}
	return append(limits, unmarkedLimits()...)
}

// unmarkedLimits are Kubernetes' own limits on labels, generous ones on numbers, and what keeps the
// cost of a rule over a duration known.
func unmarkedLimits() []Limit {
	const selector = "spec.nodeSelector"
	limits := []Limit{
		{Path: selector + ".matchLabels", MaxItems: 32},
		{Path: selector + ".matchLabels{}", MaxLength: 63},
		{Path: selector + ".matchExpressions", MaxItems: 32},
		{Path: selector + ".matchExpressions[].key", Required: true, MaxLength: 317},
		{Path: selector + ".matchExpressions[].operator", Required: true, MaxLength: 16},
		{Path: selector + ".matchExpressions[].values", MaxItems: 128},
		{Path: selector + ".matchExpressions[].values[]", MaxLength: 63},
		{Path: "spec.canary.timeout", MaxLength: 32},
		{Path: "spec.canary.recheckInterval", MaxLength: 32},
		{Path: "spec.rollout.soak", MaxLength: 32},
		{Path: "spec.rollout.drainTimeout", MaxLength: 32},
		{Path: "spec.rollout.windows[].duration", Required: true, MaxLength: 32},
	}
	for i := range limits {
		limits[i].Unmarked = true
	}
	return limits
}

func ptr(n int32) *int32 { return &n }

func texts[T ~string](values ...T) []string {
	out := make([]string, len(values))
	for i, v := range values {
		out[i] = string(v)
	}
	return out
}
