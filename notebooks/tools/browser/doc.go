// Package browser tests the notebooks where people meet them: in JupyterLab, in a real browser. It is a module of its
// own, since nothing else needs the driver. CI runs it where there is a Chromium:
//
//	go -C notebooks/tools/browser test .
package browser
