package tools

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// habits are phrases to avoid in comments. The field `phrase` is a regular expression; the
// field `better` has clearer words to write instead.
var habits = []struct{ phrase, better string }{
	{`anew`, "again"},
	{`whoever|whichever|whosoever`, "a caller that, any"},
	{`whence|thereof|whereof|lest`, "a modern word"},
	{`nevertheless`, "anyway"},
	{`for ever`, "indefinitely"},
	{`for want of`, "without"},
	{`but for`, "except"},
	{`hand(?:s|ed|ing)? in`, "submit"},
	{`for the holder of`, "The caller holds mu."},
	{`behind (?:it|them|these|those|which)`, "after"},
	{`(?:tell|tells|telling|told) of`, "report, describe"},
	{`(?:is|are|was|were|be) no \w+`, "is not a"},
}

// exceptions are permitted phrases, in the form "file: phrase".
var exceptions = []string{}

// rightAfterNo lists permitted words after "is no", for example "longer".
var rightAfterNo = []string{"longer", "more", "less", "later", "such", "need", "other", "better", "earlier"}

// habitsIn returns one line for each bad phrase in the text of a comment.
func habitsIn(text string) (found []string) {
	text = strings.Join(strings.Fields(text), " ")
	for _, h := range habits {
		for _, at := range regexp.MustCompile(`(?i)\b(?:`+h.phrase+`)\b`).FindAllStringIndex(text, -1) {
			phrase := text[at[0]:at[1]]
			if strings.Contains(h.phrase, " no ") && (strings.HasSuffix(strings.ToLower(text[:at[0]]), "there ") || slices.Contains(rightAfterNo, phrase[strings.LastIndexByte(phrase, ' ')+1:])) {
				continue
			}
			found = append(found, phrase+`: write "`+h.better+`"`)
		}
	}
	return found
}

// TestHabits reads the comments of all Go files in the repository, except generated files
// and test data.
func TestHabits(t *testing.T) {
	root := filepath.Join("..", "..")
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && (d.Name() == "testdata" || d.Name() == "node_modules" || strings.HasPrefix(d.Name(), ".") && path != root):
			return filepath.SkipDir
		case d.IsDir() || filepath.Ext(path) != ".go":
			return nil
		}
		fset := token.NewFileSet()
		file, err := parser.ParseFile(fset, path, nil, parser.ParseComments|parser.SkipObjectResolution)
		if err != nil || ast.IsGenerated(file) {
			return err
		}
		name, _ := filepath.Rel(root, path)
		for _, group := range file.Comments {
			for _, h := range habitsIn(group.Text()) {
				phrase, _, _ := strings.Cut(h, ":")
				if !slices.Contains(exceptions, filepath.ToSlash(name)+": "+phrase) {
					t.Errorf("%s:%d: %s", name, fset.Position(group.Pos()).Line, h)
				}
			}
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	}
}

func TestHabitsAreFound(t *testing.T) {
	for text, want := range map[string]int{
		"take is for the holder\nof the lock":         1,
		"The value is no queue. There is no queue.":   1,
		"It is no longer stored, and there are none.": 0,
		"What waits behind them is handed in anew.":   3,
		"close fails all current and future callers.": 0,
	} {
		if got := habitsIn(text); len(got) != want {
			t.Errorf("%q: %q, want %d", text, got, want)
		}
	}
}
