package canary

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"os"
	"strings"
	"time"
)

// trace is a request that got no answer.
type trace struct {
	trip   *trip
	target *url.URL
	err    error
	redact func(string) string
	// patience that each step was given.
	patience time.Duration
	// speaksTLS finds out whether the proxy speaks TLS; asked only when a plain one made no sense.
	speaksTLS func() bool
}

// classify says what stopped a request, by the types of the errors and by what was seen on the
// connection, never by an error's text.
func classify(t trace) *Failure {
	if t.trip.proxy == nil {
		return t.direct()
	}
	hop := hostPort(t.trip.proxy)
	switch {
	case t.trip.dialErr != nil:
		return t.proxyDial(hop)
	case t.trip.connect != 0 && t.trip.connect != http.StatusOK:
		return t.refusal(hop)
	case t.trip.connect == http.StatusOK:
		return t.behindProxy()
	case t.trip.proxy.Scheme == "https":
		return t.tlsProxy(hop)
	default:
		return t.plainProxy(hop)
	}
}

func (t trace) failure(kind FailureKind, hop, format string, args ...any) *Failure {
	return newFailure(kind, hop, t.redact(fmt.Sprintf(format, args...)))
}

func (t trace) proxyDial(hop string) *Failure {
	if dns, ok := errors.AsType[*net.DNSError](t.trip.dialErr); ok {
		return t.failure(FailProxyDNS, hop, "the proxy's name %q does not resolve (%s)", dns.Name, dns.Err)
	}
	if isTimeout(t.trip.dialErr) {
		return t.failure(FailProxyTimeout, hop, "no TCP connection to the proxy within %s", t.patience)
	}
	return t.failure(FailProxyConnect, hop, "connecting to the proxy failed: %v", t.trip.dialErr)
}

func (t trace) refusal(hop string) *Failure {
	target := hostPort(t.target)
	switch status := t.trip.connect; status {
	case http.StatusProxyAuthRequired:
		return t.failure(FailProxyAuthRequired, hop, "%s", authDetail(t.trip.proxy, t.trip.schemes))
	case http.StatusForbidden:
		return t.failure(FailProxyForbidden, hop, "the proxy answered 403 to CONNECT %s", target)
	case http.StatusTooManyRequests:
		return t.failure(FailRateLimited, hop, "the proxy answered 429 to CONNECT %s", target)
	case http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout:
		return t.failure(FailProxyUpstream, hop, "the proxy answered %d to CONNECT %s: it cannot reach it", status, target)
	default:
		if t.trip.proxy.Scheme == "http" && t.speaksTLS() {
			return t.failure(FailProxyIsTLS, hop, "the proxy answered %d to plain HTTP and speaks TLS", status)
		}
		return t.failure(FailProxyRefused, hop, "the proxy answered %d to CONNECT %s", status, target)
	}
}

// authDetail says why a proxy may have answered 407.
func authDetail(proxy *url.URL, offered []string) string {
	detail := "the proxy answered 407: no credentials were sent"
	if password, _ := proxy.User.Password(); password != "" {
		detail = fmt.Sprintf("the proxy answered 407: it refused the credentials of user %q", proxy.User.Username())
	} else if proxy.User != nil {
		// A name without a password may be a token, so it is not shown.
		detail = "the proxy answered 407: it refused the user that was sent without a password"
	}
	if len(offered) > 0 {
		detail += fmt.Sprintf(" (it offers %s)", strings.Join(offered, ", "))
	}
	return detail
}

// tlsProxy is about a proxy that was spoken to in TLS.
func (t trace) tlsProxy(hop string) *Failure {
	if _, ok := errors.AsType[tls.RecordHeaderError](t.err); ok {
		return t.failure(FailProxyIsPlain, hop, "the proxy answered the TLS handshake with %q", t.trip.first)
	}
	if issuer, ok := untrusted(t.err); ok {
		return t.failure(FailProxyUntrusted, hop, "the proxy's own certificate is issued by %q, which this node does not trust", issuer)
	}
	if isTimeout(t.err) {
		if len(t.trip.first) == 0 {
			return t.failure(FailProxyTimeout, hop, "the proxy accepted the connection and did not answer the TLS handshake within %s", t.patience)
		}
		return t.failure(FailProxyTimeout, hop, "the proxy did not answer within %s", t.patience)
	}
	if _, ok := errors.AsType[x509.HostnameError](t.err); ok {
		return t.failure(FailProxyUntrusted, hop, "the proxy's own certificate is not valid for its name: %v", t.err)
	}
	return t.failure(FailProxyNotHTTP, hop, "no HTTP over TLS is spoken there: %v", t.err)
}

// plainProxy is about a proxy that was spoken to in plain HTTP and did not answer in it.
func (t trace) plainProxy(hop string) *Failure {
	if t.tlsRecord() {
		return t.failure(FailProxyIsTLS, hop, "the proxy answered plain HTTP with a TLS record")
	}
	if len(t.trip.first) == 0 && isTimeout(t.err) {
		return t.failure(FailProxyTimeout, hop, "the proxy accepted the connection and did not answer within %s", t.patience)
	}
	if t.speaksTLS() {
		return t.failure(FailProxyIsTLS, hop, "the proxy does not answer plain HTTP and speaks TLS")
	}
	if len(t.trip.first) == 0 {
		return t.failure(FailProxyNotHTTP, hop, "the connection was closed without an answer")
	}
	return t.failure(FailProxyNotHTTP, hop, "the answer begins with %q", t.trip.first)
}

// tlsRecord says whether the first bytes are a TLS alert or handshake record (RFC 8446, 5.1).
func (t trace) tlsRecord() bool {
	return bytes.HasPrefix(t.trip.first, []byte{0x15, 0x03}) || bytes.HasPrefix(t.trip.first, []byte{0x16, 0x03})
}

// behindProxy is about the target, through a tunnel that the proxy granted.
func (t trace) behindProxy() *Failure {
	if issuer, ok := untrusted(t.err); ok {
		return t.failure(FailTLSIntercepted, t.target.Host,
			"behind the proxy a certificate was shown that is issued by %q, which this node does not trust", issuer)
	}
	return t.beyond()
}

func (t trace) direct() *Failure {
	if dns, ok := errors.AsType[*net.DNSError](t.err); ok {
		return t.failure(FailRegistryDNS, t.target.Host, "the name %q does not resolve (%s)", dns.Name, dns.Err)
	}
	if issuer, ok := untrusted(t.err); ok {
		return t.failure(FailTLSUnknownCA, t.target.Host, "its certificate is issued by %q, which this node does not trust", issuer)
	}
	return t.beyond()
}

// beyond is what can go wrong with the target on either way.
func (t trace) beyond() *Failure {
	host := t.target.Host
	if _, ok := errors.AsType[tls.RecordHeaderError](t.err); ok {
		return t.failure(FailRegistryIsPlain, host, "it does not speak TLS")
	}
	if _, ok := errors.AsType[*tls.CertificateVerificationError](t.err); ok {
		return t.failure(FailTLSInvalid, host, "its certificate is not valid: %v", t.err)
	}
	if isTimeout(t.err) {
		return t.failure(FailRegistryTimeout, host, "it did not answer in time")
	}
	return t.failure(FailRegistryConnect, host, "the connection failed: %v", t.err)
}

// untrusted returns the issuer of a certificate whose authority is unknown.
func untrusted(err error) (string, bool) {
	unknown, ok := errors.AsType[x509.UnknownAuthorityError](err)
	if !ok {
		return "", false
	}
	if verification, ok := errors.AsType[*tls.CertificateVerificationError](err); ok && len(verification.UnverifiedCertificates) > 0 {
		return verification.UnverifiedCertificates[0].Issuer.String(), true
	}
	if unknown.Cert != nil {
		return unknown.Cert.Issuer.String(), true
	}
	return "an unnamed authority", true
}

func isTimeout(err error) bool {
	if errors.Is(err, context.DeadlineExceeded) || errors.Is(err, os.ErrDeadlineExceeded) {
		return true
	}
	var timeout net.Error
	return errors.As(err, &timeout) && timeout.Timeout()
}

// judgeStatus says what an answer's status means, nil when the walk goes on with it.
func judgeStatus(answer *http.Response, purpose Purpose, proxy, target *url.URL) *Failure {
	status, host := answer.StatusCode, target.Host
	said := fmt.Sprintf("the %s request was answered %d", purpose, status)
	switch {
	case status < http.StatusBadRequest:
		return nil
	case status == http.StatusProxyAuthRequired && proxy != nil:
		return newFailure(FailProxyAuthRequired, hostPort(proxy), authDetail(proxy, nil))
	case status == http.StatusUnauthorized && purpose == PurposeRegistry:
		return nil // how a registry asks for a token
	case status == http.StatusForbidden && proxy != nil && target.Scheme == "http":
		return newFailure(FailProxyForbidden, hostPort(proxy), said+", by the proxy or by the registry behind it")
	case status == http.StatusUnauthorized, status == http.StatusForbidden:
		return newFailure(FailRegistryAuth, host, said)
	case status == http.StatusNotFound:
		return newFailure(FailNotFound, host, said)
	case status == http.StatusTooManyRequests:
		return newFailure(FailRateLimited, host, said)
	case status >= http.StatusInternalServerError:
		return newFailure(FailRegistryError, host, said)
	default:
		return newFailure(FailRegistryAnswer, host, said)
	}
}
