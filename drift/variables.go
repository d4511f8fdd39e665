package drift

import (
	"slices"
	"strings"

	"github.com/proxyward/proxyward/internal/proxyenv"
)

// isOurs says whether a variable is one that Proxyward decides or that changes what it decides. A
// runtime's own prefix (CONTAINERD_ on K3s) may stand before it.
func isOurs(name, prefix string) bool {
	if prefix != "" {
		name = strings.TrimPrefix(name, prefix)
	}
	return slices.Contains(managedNames(), name) || name == "SSL_CERT_FILE"
}

// managedNames are the variables that Proxyward may set.
func managedNames() []string {
	return []string{
		"HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY", "http_proxy", "https_proxy", "no_proxy", "SSL_CERT_DIR",
	}
}

// standIn is an environment file that sets every variable that Proxyward may set.
func standIn(prefix string) []byte {
	var text strings.Builder
	for _, name := range managedNames() {
		text.WriteString(name + "=ours\n")
		if prefix != "" {
			text.WriteString(prefix + name + "=ours\n")
		}
	}
	return []byte(text.String())
}

// ourVars picks the variables that are ours from NAME=value strings, sorted by name. Of a name that
// stands twice the first counts, as in Go's os package.
func ourVars(environ []string, prefix string) []proxyenv.Var {
	var vars []proxyenv.Var
	for _, assignment := range environ {
		name, value, ok := strings.Cut(assignment, "=")
		if !ok || !isOurs(name, prefix) {
			continue
		}
		if _, twice := lookup(vars, name); twice {
			continue
		}
		vars = append(vars, proxyenv.Var{Name: name, Value: maskedSecret(value)})
	}
	slices.SortFunc(vars, func(a, b proxyenv.Var) int { return strings.Compare(a.Name, b.Name) })
	return vars
}

// maskedSecret is a value found on the host, whose credentials are known by their shape only.
func maskedSecret(value string) proxyenv.Secret {
	return proxyenv.NewSecret(value, maskText(value))
}
