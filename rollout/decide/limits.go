package decide

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/proxyward/proxyward/api/v1alpha1"
)

const (
	// SilentLimit is how long a node that does not answer, or is not Ready, uses the budget. After
	// that it is only reported: a dead machine must not hold up the others for good.
	SilentLimit = 10 * time.Minute
	// JoinedLimit is how long after its creation a node passes for one that just joined.
	JoinedLimit = 30 * time.Minute
	// PutOff is how long a node waits that could not be drained or whose cordon was lifted.
	PutOff = 30 * time.Minute
	// restartTime is what a node is taken to need, apart from its drain and its canaries, for
	// writing, restarting, and undoing all of it.
	restartTime = 3 * time.Minute
)

// Cap is the number of nodes of a profile that may be unavailable at once: maxUnavailable as it
// stands, or that share of the nodes, rounded down and at least 1.
func Cap(maxUnavailable *intstr.IntOrString, nodes int) (int, error) {
	if maxUnavailable == nil {
		return 1, nil
	}
	const fix = "write a number of at least 1, or 1% to 100%"
	if maxUnavailable.Type == intstr.Int {
		if maxUnavailable.IntVal < 1 {
			return 0, fmt.Errorf("reading maxUnavailable: found %d; %s", maxUnavailable.IntVal, fix)
		}
		return int(maxUnavailable.IntVal), nil
	}
	text, isPercent := strings.CutSuffix(maxUnavailable.StrVal, "%")
	share, err := strconv.Atoi(text)
	if !isPercent || err != nil || share < 1 || share > 100 {
		return 0, fmt.Errorf("reading maxUnavailable: found %q; %s", maxUnavailable.StrVal, fix)
	}
	return max(1, int(math.Floor(float64(nodes)*float64(share)/100))), nil
}

// NodeTime is how long a node is taken to need at most: its drain, the restart, each canary once
// for the proof and once more for proving an undo. A window must have room for it.
func NodeTime(spec *v1alpha1.ProxyProfileSpec, drains bool) time.Duration {
	needed := restartTime
	canaries := 0
	for _, c := range []*v1alpha1.CanaryImage{spec.Canary.Internal, spec.Canary.External} {
		if c != nil {
			canaries++
		}
	}
	if spec.Canary.Timeout != nil {
		needed += time.Duration(2*canaries) * spec.Canary.Timeout.Duration
	}
	if drains && spec.Rollout.DrainTimeout != nil {
		needed += spec.Rollout.DrainTimeout.Duration
	}
	return needed
}
