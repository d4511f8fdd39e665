// Package bootstrap is the whole pipeline on one host, without an API server: what a profile means
// there, what the host has, what would have to be done, the doing of it, and the proof. The verbs
// that people and user-data run are made of it.
package bootstrap

import (
	"context"

	"github.com/proxyward/proxyward/agent/apply"
	"github.com/proxyward/proxyward/internal/node"
)

// Stage is how far the pipeline goes.
type Stage string

// The stages.
const (
	// StageFiles ends after the files: nothing is restarted, waited for or proven.
	StageFiles Stage = "files"
	// StageProof goes all the way.
	StageProof Stage = "proof"
)

// Request is what one run is asked for.
type Request struct {
	Input
	Stage Stage
	// Observe is told of progress; nil for nobody.
	Observe apply.Observer
}

// Run puts a host on the proxy that the profile describes. It reads from top to bottom: what is
// here, what is wanted, what another run left, what differs, the change, the proof, the report.
//
// Its error says why nothing was tried; an *InputError that the profile, or what goes with it,
// cannot be used on this host. How a change ended is in the report.
func Run(ctx context.Context, host *node.Node, req Request) (Report, error) {
	wanted, err := Find(host.Root, req.Input)
	if err != nil {
		return Report{}, err
	}
	c, err := begin(ctx, host, "bootstrap", req.Observe)
	if err != nil {
		return Report{}, err
	}
	c.stage(req.Stage, host, wanted)
	plan, _ := host.Look(ctx, wanted.Units, req.CredentialsVersion)
	result := c.apply(ctx, plan)
	c.proveUnlessDone(ctx, &result)
	after, _ := host.Look(ctx, wanted.Units, req.CredentialsVersion)
	return newReport(wanted, plan, result, after, c.notes), nil
}
