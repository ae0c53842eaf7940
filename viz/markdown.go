package viz

import (
	"github.com/janpfeifer/gonb/gonbui"
)

// Markdown displays text in the running cell of a GoNB notebook, as figures' Show does: a table of scores, for
// instance. Anywhere else it returns an error.
func Markdown(text string) error {
	if !gonbui.IsNotebook {
		return errNotNotebook
	}
	gonbui.DisplayMarkdown(text)
	gonbui.Sync()
	return gonbui.Error()
}
