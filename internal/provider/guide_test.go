package provider

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// TestTroubleshootingHasEveryMessage: who looks a message up finds it. Those that only say what failed ("Could not ...",
// "Invalid ...") are explained there by what follows them.
func TestTroubleshootingHasEveryMessage(t *testing.T) {
	t.Parallel()
	guide, err := os.ReadFile("../../templates/guides/troubleshooting.md")
	if err != nil {
		t.Fatal(err)
	}
	files, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	summary := regexp.MustCompile(`\b[aA]dd(?:Attribute)?(?:Warning|Error)\((?:path\.\S+ |diags, |&resp\.Diagnostics, )?(?:fmt\.Sprintf\()?"([^"]+)"`)
	found := 0
	for _, name := range files {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		source, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		for _, match := range summary.FindAllSubmatch(source, -1) {
			text := strings.ReplaceAll(string(match[1]), "%q", "...")
			if strings.HasPrefix(text, "Could not ") || strings.HasPrefix(text, "Invalid ") || strings.HasPrefix(text, "Unexpected ") {
				continue
			}
			found++
			if !strings.Contains(string(guide), "`"+text+"`") {
				t.Errorf("%s: `%s` is not in the guide", name, text)
			}
		}
	}
	if found < 20 {
		t.Errorf("only %d messages were found in the code", found)
	}
}
