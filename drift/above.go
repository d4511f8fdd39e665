package drift

import (
	"context"
	"fmt"
	"net/url"
	"slices"
	"strings"

	"github.com/proxyward/proxyward/internal/proxyenv"
	"github.com/proxyward/proxyward/runtimes"
)

// observeAbove says what wins over the environment: what the files say (it would at the next start)
// and what a running Docker says of itself (it does now).
func observeAbove(ctx context.Context, host Host, ref UnitRef, process ProcessLayer) AboveLayer {
	above := AboveLayer{Overrides: slices.Clone(ref.Runtime.Overrides)}
	if ref.Runtime.API != runtimes.PullByDocker || host.Docker == nil || process.Running != runtimes.True {
		return above
	}
	proxies, err := host.Docker.Proxies(ctx, ref.Runtime.Socket)
	if err != nil {
		above.Err = fmt.Errorf("asking Docker at %q for its proxies: %w", ref.Runtime.Socket, err)
		return above
	}
	if process.Err != nil {
		return above // nothing to compare with; the process layer says so
	}
	above.FromDaemon = true
	for _, said := range []struct{ key, variable, value string }{
		{"HttpProxy", "HTTP_PROXY", proxies.HTTP},
		{"HttpsProxy", "HTTPS_PROXY", proxies.HTTPS},
		{"NoProxy", "NO_PROXY", proxies.No},
	} {
		known := slices.ContainsFunc(above.Overrides, func(o runtimes.Override) bool { return o.Variable == said.variable })
		if known || withoutUserinfo(said.value) == withoutUserinfo(effective(process.Environ, said.variable)) {
			continue
		}
		above.Overrides = append(above.Overrides, runtimes.Override{
			File: "GET /info", Key: said.key, Variable: said.variable, Value: maskText(said.value),
		})
	}
	return above
}

// effective is what Go takes of the two cases: the upper one, or the lower where that is empty.
func effective(environ []proxyenv.Var, variable string) string {
	if value, _ := lookup(environ, variable); value != "" {
		return value
	}
	value, _ := lookup(environ, strings.ToLower(variable))
	return value
}

// withoutUserinfo makes a URL comparable with what Docker says, which has its credentials replaced.
func withoutUserinfo(value string) string {
	u, err := url.Parse(value)
	if err != nil || u.User == nil {
		return value
	}
	u.User = nil
	return u.String()
}
