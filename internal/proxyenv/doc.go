// Package proxyenv turns a profile and facts into a revision, and a revision into the environment
// that a daemon must run with; it also answers, by Go's own matcher and by other clients' rules,
// which way a host is reached under such an environment.
//
// Everything in it is pure: values in, values out, no clock, disk or network.
package proxyenv
