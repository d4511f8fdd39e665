// Package agent is the loop on one node: observe, plan, wait for approval, apply, prove, report.
package agent
