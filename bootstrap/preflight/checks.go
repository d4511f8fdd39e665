package preflight

import (
	"context"
	"strings"
	"time"
)

// docsPage has an anchor for each ID.
const docsPage = "https://github.com/proxyward/proxyward/blob/main/docs/checks/README.md"

// check is one line of the table.
type check struct {
	id, title string
	// run returns one result for each subject, and at least one.
	run func(context.Context, *subject) []Result
	// deadline after which the check is given up; defaultDeadline when 0.
	deadline time.Duration
}

const (
	// defaultDeadline of a check that asks this host alone, or opens connections.
	defaultDeadline = 10 * time.Second
	// walkDeadline of a check that waits for the walks to the canaries.
	walkDeadline = walkTimeout + 5*time.Second
)

// checks is the table. An ID is never given a second meaning.
func checks() []check {
	return []check{
		{id: "PW101", title: "container runtimes", run: checkRuntimes},
		{id: "PW102", title: "files on disk", run: perUnit(checkFiles)},
		{id: "PW103", title: "what systemd has loaded", run: perUnit(checkLoaded)},
		{id: "PW104", title: "environment of the running daemon", run: perUnit(checkProcess)},
		{id: "PW105", title: "settings above the environment", run: perUnit(checkAbove)},
		{id: "PW106", title: "environment after the next start", run: perUnit(checkNextStart)},
		{id: "PW107", title: "files of others", run: perUnit(checkOthers)},
		{id: "PW108", title: "certificate settings of others", run: checkCertificates},
		{id: "PW109", title: "our bytes under systemd's rules", run: perUnit(checkRoundTrip)},
		{id: "PW110", title: "proxy variables of others, as Go reads them", run: perUnit(checkForeignValues)},
		{id: "PW201", title: "which way each host goes", run: checkDecisions, deadline: walkDeadline},
		{id: "PW202", title: "dead entries of the profile", run: checkDeadEntries},
		{id: "PW301", title: "name of the proxy", run: checkProxyName},
		{id: "PW302", title: "connection to the proxy", run: checkProxyConnection},
		{id: "PW303", title: "answer of the proxy", run: checkProxyAnswer, deadline: walkDeadline},
		{id: "PW304", title: "interception of TLS", run: checkInterception, deadline: walkDeadline},
		{id: "PW401", title: "internal canary, walked to a layer", run: checkInternalWalk, deadline: walkDeadline},
		{id: "PW402", title: "external canary, walked to a layer", run: checkExternalWalk, deadline: walkDeadline},
		{id: "PW403", title: "direct ways that are really open", run: checkDirect},
		{id: "PW501", title: "room to write the files", run: checkWritable},
		{id: "PW502", title: "modes and labels", run: checkModes},
		{id: "PW601", title: "containers during a restart", run: perUnit(checkContainers)},
		{id: "PW602", title: "start limit", run: perUnit(checkStartLimit)},
		{id: "PW603", title: "units restarted along", run: perUnit(checkPropagation)},
		{id: "PW604", title: "order at boot", run: perUnit(checkBootOrder)},
		{id: "PW701", title: "proxies in static pods", run: checkManifests},
	}
}

// Docs returns the address of a check's documentation; for "" that of the whole page.
func Docs(id string) string {
	if id == "" {
		return docsPage
	}
	return docsPage + "#" + strings.ToLower(id)
}
