package rabbitmqadmin

import (
	"net/http"
	"strings"
	"testing"
	"time"
)

func TestConfigIsChecked(t *testing.T) {
	t.Parallel()
	one := []string{"http://h:15672"}
	for name, tc := range map[string]struct {
		cfg  Config
		says string // "" is accepted
	}{
		"minimal":                   {Config{Endpoints: one}, ""},
		"trailing slash, prefix":    {Config{Endpoints: []string{"https://h/rabbit/mq/"}}, ""},
		"IPv6":                      {Config{Endpoints: []string{"http://[::1]:15672"}}, ""},
		"no endpoint":               {Config{}, "no endpoint"},
		"empty endpoint":            {Config{Endpoints: []string{""}}, "begin with http://"},
		"no scheme":                 {Config{Endpoints: []string{"localhost:15672"}}, "begin with http://"},
		"AMQP as management":        {Config{Endpoints: []string{"amqp://h"}}, "begin with http://"},
		"no host":                   {Config{Endpoints: []string{"http://:15672"}}, "no host"},
		"query":                     {Config{Endpoints: []string{"http://h/?a=b"}}, "query"},
		"fragment":                  {Config{Endpoints: []string{"http://h/#/queues"}}, "fragment"},
		"credentials":               {Config{Endpoints: []string{"http://u:p@h"}}, "username and password"},
		"not a URL":                 {Config{Endpoints: []string{"http://h:port"}}, "not a URL"},
		"AMQP":                      {Config{Endpoints: one, AMQPEndpoints: []string{"amqp://h", "amqps://h:5671/"}}, ""},
		"AMQP with a vhost":         {Config{Endpoints: one, AMQPEndpoints: []string{"amqp://h/v"}}, "names a vhost"},
		"AMQP with credentials":     {Config{Endpoints: one, AMQPEndpoints: []string{"amqp://u:p@h"}}, "username and password"},
		"management as AMQP":        {Config{Endpoints: one, AMQPEndpoints: one}, "begin with amqp://"},
		"colon in user":             {Config{Endpoints: one, Username: "a:b"}, "colon"},
		"password without user":     {Config{Endpoints: one, Password: "p"}, "without a user"},
		"negative timeout":          {Config{Endpoints: one, RequestTimeout: -1}, "request timeout"},
		"negative interval":         {Config{Endpoints: one, StatisticsInterval: -time.Second}, "statistics interval"},
		"header with a line break":  {Config{Endpoints: one, Headers: http.Header{"X-A": {"b\r\nX-C: d"}}}, `"X-A"`},
		"header ending in newline":  {Config{Endpoints: one, Headers: http.Header{"X-A": {"b\n"}}}, `"X-A"`},
		"header name with a space":  {Config{Endpoints: one, Headers: http.Header{"X A": {"b"}}}, `"X A"`},
		"header name with a colon":  {Config{Endpoints: one, Headers: http.Header{"X:A": {"b"}}}, `"X:A"`},
		"empty header name":         {Config{Endpoints: one, Headers: http.Header{"": {"b"}}}, `""`},
		"user agent, line break":    {Config{Endpoints: one, UserAgent: "a\nb"}, "user agent"},
		"header with tabs, umlauts": {Config{Endpoints: one, Headers: http.Header{"X-A": {"b\tü"}}}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c, err := New(tc.cfg)
			if err == nil {
				c.Close()
				c.Close()
			}
			switch {
			case tc.says == "" && err != nil:
				t.Error(err)
			case tc.says != "" && (err == nil || !strings.Contains(err.Error(), tc.says)):
				t.Errorf("got %v, want something about %q", err, tc.says)
			}
		})
	}
}

func TestPathPrefixAndHeaders(t *testing.T) {
	t.Parallel()
	var got *http.Request
	f := fake(t, func(w http.ResponseWriter, r *http.Request) {
		got = r
		reply(w, http.StatusOK, `{"name":"a/b %;ü","vhost":"/"}`)
	})
	for _, prefix := range []string{"", "/", "//", "/rabbit%20mq", "/rabbit%20mq/"} {
		c, _ := newClient(t, func(cfg *Config) {
			cfg.UserAgent = "test-agent"
			cfg.Headers = http.Header{"x-one": {"1"}, "authorization": {"Bearer token"}, "Host": {"broker.example"}}
		}, f.URL+prefix)
		must(t, second(c.Queue(t.Context(), "/", "a/b %;ü")))
		want := strings.TrimRight(prefix, "/") + "/api/queues/%2F/a%2Fb%20%25%3B%C3%BC?"
		if !strings.HasPrefix(got.RequestURI, want) {
			t.Errorf("prefix %q: %s", prefix, got.RequestURI)
		}
		if got.Header.Get("X-One") != "1" || got.Header.Get("Authorization") != "Bearer token" || got.UserAgent() != "test-agent" || got.Host != "broker.example" {
			t.Errorf("headers: %v, host %s", got.Header, got.Host)
		}
	}
	c, _ := newClient(t, func(cfg *Config) { cfg.Username, cfg.Password = "", "" }, f.URL)
	must(t, second(c.Queue(t.Context(), "/", "a/b %;ü")))
	if _, present := got.Header["Authorization"]; present {
		t.Errorf("headers without a user: %v", got.Header)
	}
}
