package main

import (
	"fmt"
	"net"
	"net/http"
	"net/url"
	"strings"
)

// loopbackOnly refuses requests whose Host header does not name this machine, because the
// host name of a web page may resolve to 127.0.0.1. It also refuses requests from web pages
// of other machines.
func loopbackOnly(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		why := ""
		origins := r.Header.Values("Origin")
		switch {
		case !onLoopback(r.Host):
			why = fmt.Sprintf("the host %q is not this machine; use localhost or 127.0.0.1, or start the server with --allow-remote", r.Host)
		case len(origins) > 1 || len(origins) == 1 && !loopbackOrigin(origins[0]):
			why = "web pages of other origins are not served"
		case r.Header.Get("Sec-Fetch-Site") == "cross-site":
			why = "web pages of other sites are not served"
		}
		if why != "" {
			http.Error(w, "sqsfifo serve: "+why, http.StatusForbidden)
			return
		}
		next.ServeHTTP(w, r)
	})
}

// onLoopback reports whether a host (with or without a port) is localhost, ::1 or an
// address in 127.0.0.0/8.
func onLoopback(host string) bool {
	name := host
	if h, _, err := net.SplitHostPort(host); err == nil {
		name = h
	} else {
		name = strings.TrimSuffix(strings.TrimPrefix(name, "["), "]")
	}
	ip := net.ParseIP(name)
	return strings.EqualFold(name, "localhost") || ip != nil && ip.IsLoopback()
}

func loopbackOrigin(origin string) bool {
	u, err := url.Parse(origin)
	return err == nil && u.Host != "" && onLoopback(u.Host)
}
