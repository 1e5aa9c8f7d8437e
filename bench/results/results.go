// Package results is what the benchmarks say: bench/results.json and bench/provider.json, and how busy the machine was.
package results

import (
	"encoding/json"
	"fmt"
	"os"
	"strings"
)

// Figure is one number.
type Figure struct {
	Name string `json:"name"`
	// Value is what was measured of this module, and Baseline of what it is compared with, in one unit.
	Value    float64 `json:"value"`
	Unit     string  `json:"unit"`
	Baseline float64 `json:"baseline"`
	// Ratio is Value to Baseline; where several pairs were measured, the median of their ratios.
	Ratio float64 `json:"ratio"`
}

// Write writes figures to a file.
func Write(path string, figures []Figure) error {
	text, err := json.MarshalIndent(figures, "", "  ")
	if err != nil {
		return fmt.Errorf("encoding the results: %w", err)
	}
	if err := os.WriteFile(path, append(text, '\n'), 0o644); err != nil {
		return fmt.Errorf("writing the results: %w", err)
	}
	return nil
}

// LoadAverage is the machine's over the last minute, "?" where it is not known.
func LoadAverage() string {
	text, err := os.ReadFile("/proc/loadavg")
	if err != nil {
		return "?"
	}
	first, _, _ := strings.Cut(string(text), " ")
	return first
}
