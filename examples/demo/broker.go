package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"strings"
	"time"

	"github.com/redeliver/terraform-provider-redeliver/internal/brokertest"
)

// broker is the broker the demo runs on and the vhost it made there.
type broker struct {
	endpoint, amqpURL, username, password string
	vhost, version, consumer              string
	private                               *brokertest.Broker
}

// openBroker takes the configured broker or starts a private one.
func openBroker(ctx context.Context) (*broker, error) {
	b := &broker{
		amqpURL:  os.Getenv("REDELIVER_DEMO_AMQP_URL"),
		username: os.Getenv("REDELIVER_RABBITMQ_USERNAME"), password: os.Getenv("REDELIVER_RABBITMQ_PASSWORD"),
	}
	// Of several endpoints the demo uses the first.
	endpoint, _, _ := strings.Cut(os.Getenv("REDELIVER_RABBITMQ_ENDPOINTS"), ",")
	b.endpoint = strings.TrimSuffix(strings.TrimSpace(endpoint), "/")
	switch {
	case b.endpoint == "":
		fmt.Println("starting a private one on loopback ...")
		private, err := brokertest.Start(ctx, brokertest.Options{Install: true, Progress: os.Stdout})
		if err != nil {
			return nil, err
		}
		b.private = private
		b.endpoint, b.amqpURL = private.ManagementURL(), private.AMQPURL("/")
		b.username, b.password = private.Username(), private.Password()
	case b.amqpURL == "" || b.username == "":
		return nil, errors.New("REDELIVER_RABBITMQ_ENDPOINTS is set, so REDELIVER_RABBITMQ_USERNAME, REDELIVER_RABBITMQ_PASSWORD and REDELIVER_DEMO_AMQP_URL " +
			"(amqp://host:5672) must be too; unset it to have the demo start a private broker")
	}
	b.vhost = fmt.Sprintf("redeliver-demo-%d", os.Getpid())
	b.consumer = b.vhost + "-consumer"
	var overview struct {
		Version string `json:"rabbitmq_version"`
	}
	err := b.request(ctx, http.MethodGet, "overview", nil, &overview)
	if err == nil {
		err = b.request(ctx, http.MethodPut, "vhosts/"+b.vhost, map[string]any{}, nil)
	}
	if err == nil {
		everything := map[string]string{"configure": ".*", "write": ".*", "read": ".*"}
		err = b.request(ctx, http.MethodPut, "permissions/"+b.vhost+"/"+url.PathEscape(b.username), everything, nil)
	}
	b.version = overview.Version
	if err != nil {
		return nil, errors.Join(err, b.close())
	}
	return b, nil
}

// close removes what the demo made. It is done also when the demo was interrupted.
func (b *broker) close() error {
	if b.private != nil {
		return b.private.Stop()
	}
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	return errors.Join(
		b.request(ctx, http.MethodDelete, "vhosts/"+b.vhost, nil, nil),
		b.request(ctx, http.MethodDelete, "users/"+b.consumer, nil, nil),
	)
}

// consumerURL makes the consumer's user with the permissions that Terraform computed.
func (b *broker) consumerURL(ctx context.Context, permissions permissions) (string, error) {
	password := fmt.Sprintf("%x", time.Now().UnixNano())
	if err := b.request(ctx, http.MethodPut, "users/"+b.consumer, map[string]any{"password": password, "tags": ""}, nil); err != nil {
		return "", err
	}
	if err := b.request(ctx, http.MethodPut, "permissions/"+b.vhost+"/"+b.consumer, permissions, nil); err != nil {
		return "", err
	}
	return b.urlOf(url.UserPassword(b.consumer, password))
}

// urlOf is the AMQP URL of the demo's vhost for a user.
func (b *broker) urlOf(user *url.Userinfo) (string, error) {
	u, err := url.Parse(b.amqpURL)
	if err != nil {
		return "", errors.New("REDELIVER_DEMO_AMQP_URL is not a URL such as amqp://host:5672")
	}
	u.User, u.Path = user, "/"+b.vhost
	return u.String(), nil
}

// tamper replaces a hold queue by one with another time to live, as somebody at a console might.
func (b *broker) tamper(ctx context.Context, vhost, queue string, ttl int) error {
	at := "queues/" + url.PathEscape(vhost) + "/" + queue
	var live struct {
		Arguments map[string]any `json:"arguments"`
	}
	if err := b.request(ctx, http.MethodGet, at, nil, &live); err != nil {
		return err
	}
	before := live.Arguments["x-message-ttl"]
	live.Arguments["x-message-ttl"] = ttl
	fmt.Printf("%s: x-message-ttl %v -> %d\n", queue, before, ttl)
	for _, step := range []struct {
		method, path string
		body         any
	}{
		{http.MethodDelete, at, nil},
		{http.MethodPut, at, map[string]any{"durable": true, "arguments": live.Arguments}},
		{http.MethodPost, "bindings/" + url.PathEscape(vhost) + "/e/orders-retry/q/" + queue, map[string]any{"routing_key": queue}},
	} {
		if err := b.request(ctx, step.method, step.path, step.body, nil); err != nil {
			return err
		}
	}
	return nil
}

// request sends a request to the management API.
func (b *broker) request(ctx context.Context, method, path string, body, answer any) error {
	var payload io.Reader
	if body != nil {
		text, err := json.Marshal(body)
		if err != nil {
			return err
		}
		payload = bytes.NewReader(text)
	}
	req, err := http.NewRequestWithContext(ctx, method, b.endpoint+"/api/"+path, payload)
	if err != nil {
		return err
	}
	req.SetBasicAuth(b.username, b.password)
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		return err
	}
	if resp.StatusCode >= 300 && (method != http.MethodDelete || resp.StatusCode != http.StatusNotFound) {
		return fmt.Errorf("%s /api/%s: %s: %s", method, path, resp.Status, text)
	}
	if answer == nil {
		return nil
	}
	return json.Unmarshal(text, answer)
}
