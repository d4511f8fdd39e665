package v1alpha1

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/util/intstr"
)

// Rule is one thing about a profile that is judged at admission. The generated CRDs carry its CEL
// expression, Validate runs its Go twin, and a test holds the two to the same answers.
//
// +kubebuilder:object:generate=false
type Rule struct {
	// Path of the field in the schema, from spec on: [] stands for the items of a list and {} for
	// the values of a map (spec.noProxy.entries[].value). AnyText stands for every text.
	Path string
	// CEL expression over self that is true for a good value.
	CEL string
	// Problem with a bad value, and what to write instead.
	Problem, Fix string

	// good is the Go twin of CEL.
	good func(value any) bool
}

// Message is what the API server says when it refuses a value.
func (r Rule) Message() string { return r.Problem + "; " + r.Fix }

// AnyText as a rule's path stands for every text in a spec, keys of maps included.
const AnyText = "spec.**"

const (
	// hostPattern takes a host name or an IPv4 address.
	hostPattern = `[a-zA-Z0-9]([a-zA-Z0-9._-]*[a-zA-Z0-9])?`
	// portPattern takes 1 to 65535.
	portPattern = `(6553[0-5]|655[0-2][0-9]|65[0-4][0-9][0-9]|6[0-4][0-9][0-9][0-9]|[1-5][0-9][0-9][0-9][0-9]|[1-9][0-9]?[0-9]?[0-9]?)`
	// bracketPattern takes what can be an IPv6 address in brackets.
	bracketPattern = `\[[0-9a-fA-F:.]+\]`
	// endpointPattern takes host or host:port, IPv6 in brackets or, without a port, bare.
	endpointPattern = `^((` + hostPattern + `|` + bracketPattern + `)(:` + portPattern + `)?|[0-9a-fA-F:.]*:[0-9a-fA-F:.]*:[0-9a-fA-F:.]*)?$`
	// namePattern takes the name of a Secret or ConfigMap (RFC 1123 subdomain).
	namePattern = `^([a-z0-9]([a-z0-9-]*[a-z0-9])?([.][a-z0-9]([a-z0-9-]*[a-z0-9])?)*)?$`
	// networkPattern takes what has the outer form of a CIDR; Resolve judges the rest.
	networkPattern = `^\s*[0-9a-fA-F:.]+/[0-9]{1,3}\s*$`
	// controlPattern finds control characters except the tab, and the two Unicode line separators:
	// systemd, terminals and log readers give them meanings of their own.
	controlPattern = `[\x{00}-\x{08}\x{0a}-\x{1f}\x{7f}-\x{9f}\x{2028}\x{2029}]`
	// durationPattern is the grammar of Go's time.ParseDuration.
	durationPattern = `^[-+]?(0|(([0-9]+([.][0-9]*)?|[.][0-9]+)(ns|us|µs|μs|ms|s|m|h))+)$`
	// imagePattern takes an image with its registry and a tag or digest.
	imagePattern = `^(localhost|[a-zA-Z0-9._-]*[.][a-zA-Z0-9._-]*|[a-zA-Z0-9._-]+:[0-9]+|` + bracketPattern + `(:[0-9]+)?)(:[0-9]+)?/[a-z0-9._/-]+(:[a-zA-Z0-9_][a-zA-Z0-9_.-]{0,127})?(@sha256:[0-9a-f]{64})?$`
	imageVersion = `(:[a-zA-Z0-9_][a-zA-Z0-9_.-]{0,127}|@sha256:[0-9a-f]{64})$`
)

// Rules returns the admission rules of a ProxyProfile.
func Rules() []Rule {
	const (
		secretFix = "create the Secret that spec.proxy.credentialsSecretName names, with the keys username and password as they are (Proxyward encodes them), and write the URL without them"
		proxyFix  = "write scheme://host:port, such as http://proxy.corp.example:3128"
	)
	rules := []Rule{
		lacks(AnyText, controlPattern, "it holds a control character", "write it without line breaks, escape codes and the like"),
		{
			Path: "spec.proxy", CEL: "has(self.http) && self.http != '' || has(self.https) && self.https != ''",
			Problem: "it names no proxy", Fix: "write https, and http for http:// URLs",
			good: func(v any) bool { p, ok := v.(Proxy); return ok && (p.HTTP != "" || p.HTTPS != "") },
		},
		lacks("spec.noProxy.entries[].value", `[*]`, "a wildcard sends everything past the proxy, or matches nothing", "write .example.com for the subdomains of example.com, or a CIDR such as 10.0.0.0/8"),
		lacks("spec.noProxy.entries[].value", `://|@`, "it is a URL, and entries are hosts", "write the host alone"),
		lacks("spec.noProxy.entries[].value", `,`, "it holds several entries", "write one item for each"),
		matches("spec.proxy.credentialsSecretName", namePattern, "it is not the name of a Secret", "write lower-case letters, digits, dots and dashes"),
		matches("spec.proxy.trustedCA.configMapName", namePattern, "it is not the name of a ConfigMap", "write lower-case letters, digits, dots and dashes"),
		matches("spec.proxy.trustedCA.key", `^[-._a-zA-Z0-9]*$`, "it is not the key of a ConfigMap", "write a key such as ca.crt"),
		matches("spec.cluster.apiServer", endpointPattern, "it is not host:port", "write it as the nodes' kubeconfig has it, without https://, an IPv6 address as [address]:port"),
		matches("spec.cluster.domain", `^[a-zA-Z0-9._-]*$`, "it is not a domain", "write the cluster's DNS domain, such as cluster.local"),
		matches("spec.registries.internal[]", endpointPattern, "it is not a registry's host or host:port", "write what stands before the first slash in image names, such as registry.corp.example:5000"),
		matches("spec.nodeSelector.matchExpressions[].operator", `^(In|NotIn|Exists|DoesNotExist)$`, "there is no such operator", "write In, NotIn, Exists or DoesNotExist"),
		atLeast("spec.canary.timeout", time.Second),
		atLeast("spec.canary.recheckInterval", time.Minute),
		atLeast("spec.rollout.soak", 0),
		atLeast("spec.rollout.drainTimeout", time.Second),
		{
			Path:    "spec.rollout.maxUnavailable",
			CEL:     `type(self) == int ? self >= 1 : string(self).matches('^([1-9][0-9]?|100)%$')`,
			Problem: "it lets no node be changed, or more than there are",
			Fix:     "write a number of nodes from 1, or a percentage from 1% to 100% in quotes",
			good:    goodMaxUnavailable,
		},
		matches("spec.rollout.windows[].start", `^([01][0-9]|2[0-3]):[0-5][0-9]$`, "it is not a time of day", `write "HH:MM" in quotes, such as "22:00"`),
		{
			Path:    "spec.rollout.windows[].duration",
			CEL:     celDuration("duration(self) > duration('0s') && duration(self) <= duration('24h')"),
			Problem: "a window is open for more than 0 and at most 24h", Fix: "write a duration such as 4h",
			good: func(v any) bool { d, ok := v.(time.Duration); return ok && d > 0 && d <= 24*time.Hour },
		},
		matches("spec.rollout.windows[].timeZone", `^([A-Za-z][A-Za-z0-9_+-]*(/[A-Za-z0-9_+-]+)*)?$`, "it is not an IANA time zone", "write a name such as Europe/Berlin, or UTC"),
		lacks("spec.rollout.windows[].timeZone", `^Local$`, "nodes and controller may disagree on what is local", "write a name such as Europe/Berlin, or UTC"),
	}
	for _, path := range []string{"spec.proxy.http", "spec.proxy.https"} {
		rules = append(rules,
			lacks(path, `@`, "it holds credentials", secretFix),
			matches(path, `^$|^(?i:http|https|socks5)://`, "its scheme is missing or is none of http, https and socks5", proxyFix),
			matches(path, `^$|^([a-zA-Z0-9+.-]*://)?(`+hostPattern+`|`+bracketPattern+`)(:`+portPattern+`)?/?$`, "what follows the scheme is not host:port", proxyFix),
		)
	}
	for _, path := range []string{"spec.cluster.serviceCIDRs[]", "spec.cluster.podCIDRs[]", "spec.cluster.nodeCIDRs[]"} {
		rules = append(rules, matches(path, networkPattern, "it is not a network", "write a CIDR such as 10.96.0.0/16; a single address is 10.96.0.1/32"))
	}
	for _, path := range []string{"spec.canary.internal", "spec.canary.external"} {
		rules = append(rules,
			matches(path+".image", imagePattern, "it is not an image with its registry", "write registry/repository:tag, such as registry.k8s.io/pause:3.10"),
			matches(path+".image", imageVersion, "it has neither a tag nor a digest", "write registry/repository:tag, such as registry.k8s.io/pause:3.10"),
			matches(path+".pullSecretName", namePattern, "it is not the name of a Secret", "write lower-case letters, digits, dots and dashes"),
		)
	}
	return rules
}

// matches is a rule for a text that must match an RE2 pattern, which CEL and Go share.
func matches(path, pattern, problem, fix string) Rule {
	re := regexp.MustCompile(pattern)
	return Rule{
		Path: path, CEL: "self.matches(" + celString(pattern) + ")", Problem: problem, Fix: fix,
		good: func(v any) bool { s, ok := v.(string); return ok && re.MatchString(s) },
	}
}

// lacks is a rule for a text in which an RE2 pattern must not be found.
func lacks(path, pattern, problem, fix string) Rule {
	re := regexp.MustCompile(pattern)
	return Rule{
		Path: path, CEL: "!self.matches(" + celString(pattern) + ")", Problem: problem, Fix: fix,
		good: func(v any) bool { s, ok := v.(string); return ok && !re.MatchString(s) },
	}
}

// atLeast is a rule for a duration with a lower bound.
func atLeast(path string, least time.Duration) Rule {
	return Rule{
		Path:    path,
		CEL:     celDuration(fmt.Sprintf("duration(self) >= duration('%s')", least)),
		Problem: fmt.Sprintf("it is not a duration of at least %s", least), Fix: "write a duration such as 90s, 10m or 6h",
		good: func(v any) bool { d, ok := v.(time.Duration); return ok && d >= least },
	}
}

// celDuration guards an expression over duration(self) with the grammar, because the schema alone
// takes any text for a duration.
func celDuration(expression string) string {
	return "self.matches(" + celString(durationPattern) + ") && " + expression
}

// celString writes a pattern as a raw CEL string.
func celString(pattern string) string {
	return "r'" + pattern + "'"
}

func goodMaxUnavailable(v any) bool {
	m, ok := v.(intstr.IntOrString)
	if !ok {
		return false
	}
	if m.Type == intstr.Int {
		return m.IntVal >= 1
	}
	digits, isPercent := strings.CutSuffix(m.StrVal, "%")
	n, err := strconv.Atoi(digits)
	return isPercent && err == nil && n >= 1 && n <= 100 && strconv.Itoa(n) == digits
}
