package imports_test

import (
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// ARCHITECTURE.md draws which packages import which: every import that does not follow from others, and nothing else.
func TestDrawing(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("../../ARCHITECTURE.md")
	if err != nil {
		t.Fatal(err)
	}
	drawn := arrows(t, string(text))
	live := liveImports(t, drawn)
	for from, to := range drawn {
		for _, to := range to {
			if !slices.Contains(live[from], to) {
				t.Errorf("drawn, and not so: %s imports %s", from, to)
			}
			for _, by := range live[from] {
				if by != to && reaches(live, by, to) {
					t.Errorf("drawn, and it follows from others: %s imports %s, which %s leads to", from, to, by)
				}
			}
		}
	}
	for from, to := range live {
		for _, to := range to {
			if !reaches(drawn, from, to) {
				t.Errorf("not drawn: %s imports %s", from, to)
			}
		}
	}
}

// arrows reads the first drawing: the packages by their paths in the module, and those that each points at.
func arrows(t *testing.T, text string) map[string][]string {
	t.Helper()
	_, text, _ = strings.Cut(text, "```mermaid\n")
	text, _, closed := strings.Cut(text, "```\n")
	if !closed {
		t.Fatal("there is no drawing")
	}
	paths := map[string]string{}
	for _, node := range regexp.MustCompile(`(\w+)\[([\w/.]+)\]`).FindAllStringSubmatch(text, -1) {
		paths[node[1]] = strings.TrimSuffix(node[2], "main.go")
	}
	drawn := map[string][]string{}
	for _, arrow := range regexp.MustCompile(`(?m)^ *(\w+)\S* --> (\w+)`).FindAllStringSubmatch(text, -1) {
		from, known := paths[arrow[1]]
		to, alsoKnown := paths[arrow[2]]
		if !known || !alsoKnown {
			t.Fatalf("an arrow has an end without a package: %q", arrow[0])
		}
		drawn[from] = append(drawn[from], to)
		drawn[to] = append(drawn[to], []string{}...)
	}
	if len(drawn) < 10 {
		t.Fatalf("only %d packages are drawn", len(drawn))
	}
	return drawn
}

// liveImports is what the drawn packages import of each other.
func liveImports(t *testing.T, drawn map[string][]string) map[string][]string {
	t.Helper()
	args := []string{"list", "-f", `{{.ImportPath}} {{join .Imports " "}}`}
	for path := range drawn {
		args = append(args, strings.TrimSuffix(module+path, "/"))
	}
	list := exec.CommandContext(t.Context(), "go", args...)
	list.Stderr = os.Stderr
	out, err := list.Output()
	if err != nil {
		t.Fatal(err)
	}
	live := map[string][]string{}
	for line := range strings.Lines(string(out)) {
		paths := strings.Fields(line)
		from := strings.TrimPrefix(paths[0]+"/", module)
		for _, path := range paths[1:] {
			if to, own := strings.CutPrefix(path, module); own {
				if _, isDrawn := drawn[to]; isDrawn {
					live[strings.TrimSuffix(from, "/")] = append(live[strings.TrimSuffix(from, "/")], to)
				}
			}
		}
	}
	return live
}

// reaches reports whether a package imports another one, by itself or through others.
func reaches(imports map[string][]string, from, to string) bool {
	return slices.ContainsFunc(imports[from], func(next string) bool { return next == to || reaches(imports, next, to) })
}
