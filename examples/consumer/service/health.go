package main

import (
	"encoding/json"
	"net/http"

	"github.com/redeliver/terraform-provider-redeliver/redeliver"
)

// healthHandler answers an orchestrator's probes. Ready is who takes messages:
// not during a shutdown, and not while the broker is away. Alive is who answers:
// a restart would bring no broker back.
func healthHandler(health func() redeliver.Health) http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /livez", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusOK) })
	mux.HandleFunc("GET /readyz", func(w http.ResponseWriter, _ *http.Request) {
		h := health()
		w.Header().Set("Content-Type", "application/json")
		if h.Err() != nil {
			w.WriteHeader(http.StatusServiceUnavailable)
		}
		_ = json.NewEncoder(w).Encode(h) // for people: status, reasons, and each topic's own
	})
	return mux
}
