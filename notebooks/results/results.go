// Package results holds what is recorded of the papers' tables and figures, a file for each study: notebooks show it
// wherever they run.
package results

import "embed"

// Files are the records, such as "ohsmc.table1.json", and claims.txt.
//
//go:embed *.json claims.txt
var Files embed.FS
