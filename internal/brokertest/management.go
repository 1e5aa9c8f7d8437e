package brokertest

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"time"
)

// newHTTPClient returns a client that reaches the loopback address without a proxy.
func newHTTPClient() *http.Client {
	return &http.Client{Transport: &http.Transport{}, Timeout: time.Minute}
}

// doRequest does one request with a JSON body, unless that is nil, and reads the whole answer.
func doRequest(ctx context.Context, client *http.Client, method, url, user, password string, body any) (int, []byte, error) {
	var reader io.Reader
	if body != nil {
		text, err := json.Marshal(body)
		if err != nil {
			return 0, nil, fmt.Errorf("%s %s: encoding the body: %w", method, url, err)
		}
		reader = bytes.NewReader(text)
	}
	req, err := http.NewRequestWithContext(ctx, method, url, reader)
	if err != nil {
		return 0, nil, fmt.Errorf("%s %s: %w", method, url, err)
	}
	req.SetBasicAuth(user, password)
	req.Header.Set("Content-Type", "application/json")
	resp, err := client.Do(req)
	if err != nil {
		return 0, nil, err // names the method and the URL already
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		return 0, nil, fmt.Errorf("%s %s: reading the answer: %w", method, url, err)
	}
	return resp.StatusCode, text, nil
}

// request does one request to the management API as the administrator. The path begins with "/api/" and
// is sent as it is.
func (b *Broker) request(ctx context.Context, method, path string, body any) (int, []byte, error) {
	client := newHTTPClient()
	defer client.CloseIdleConnections()
	return doRequest(ctx, client, method, b.ManagementURL()+path, b.user, b.password, body)
}

// fetchVersion asks the broker for its version.
func (b *Broker) fetchVersion(ctx context.Context) (string, error) {
	status, body, err := b.request(ctx, http.MethodGet, "/api/overview", nil)
	if err != nil {
		return "", fmt.Errorf("asking RabbitMQ for its version: %w", err)
	}
	var overview struct {
		Version string `json:"rabbitmq_version"`
	}
	if status != http.StatusOK {
		return "", fmt.Errorf("asking RabbitMQ at %s for its version: status %d: %s", b.ManagementURL(), status, body)
	}
	if err := json.Unmarshal(body, &overview); err != nil || overview.Version == "" {
		return "", fmt.Errorf("asking RabbitMQ at %s for its version: cannot read %q: %w", b.ManagementURL(), body, err)
	}
	return overview.Version, nil
}
