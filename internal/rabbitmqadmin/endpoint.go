package rabbitmqadmin

import (
	"fmt"
	"net"
	"net/url"
	"strings"
)

// endpoint is one address of the management API: scheme, host and path prefix, without credentials and without a
// trailing slash, so that "/api/..." can be appended as it is.
type endpoint string

func parseEndpoints(raw []string) ([]endpoint, error) {
	out := make([]endpoint, 0, len(raw))
	for _, text := range raw {
		u, err := parseAddress(text, "http", "https")
		if err != nil {
			return nil, fmt.Errorf("endpoint %w", err)
		}
		out = append(out, endpoint(strings.TrimRight(u.Scheme+"://"+u.Host+u.EscapedPath(), "/")))
	}
	return out, nil
}

func parseAMQPEndpoints(raw []string) ([]*url.URL, error) {
	out := make([]*url.URL, 0, len(raw))
	for _, text := range raw {
		u, err := parseAddress(text, "amqp", "amqps")
		if err != nil {
			return nil, fmt.Errorf("AMQP endpoint %w", err)
		}
		if strings.Trim(u.Path, "/") != "" {
			return nil, fmt.Errorf("AMQP endpoint %q: it names a vhost, which every resource names itself; write %s://%s", text, u.Scheme, u.Host)
		}
		if u.Port() == "" {
			port := "5672"
			if u.Scheme == "amqps" {
				port = "5671"
			}
			u.Host = net.JoinHostPort(u.Hostname(), port)
		}
		out = append(out, &url.URL{Scheme: u.Scheme, Host: u.Host})
	}
	return out, nil
}

// parseAddress reads scheme://host[:port][/path]. Its errors never quote credentials.
func parseAddress(text, plain, secure string) (*url.URL, error) {
	u, err := url.Parse(text)
	if err != nil {
		// The parser's own error quotes the text, and a password that breaks parsing would be in it.
		return nil, fmt.Errorf("is not a URL: write %s://HOST:PORT, with the user and the password in their own settings", plain)
	}
	if u.User != nil {
		return nil, fmt.Errorf("%q has credentials in it: put them into username and password, which are kept out of state and logs", u.Scheme+"://"+u.Host)
	}
	shown := fmt.Sprintf("%q", text)
	if strings.ContainsAny(text, "@?") {
		shown = "(not shown, because it may have credentials in it)"
	}
	switch {
	case u.Scheme != plain && u.Scheme != secure:
		return nil, fmt.Errorf("%s: it has to begin with %s:// or %s://", shown, plain, secure)
	case u.Hostname() == "":
		return nil, fmt.Errorf("%s: there is no host in it; write %s://HOST:PORT", shown, plain)
	case u.RawQuery != "" || u.Fragment != "" || u.ForceQuery:
		return nil, fmt.Errorf("%s: it has a query or a fragment, and paths are appended to it; leave that out", shown)
	}
	return u, nil
}
