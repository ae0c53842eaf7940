//go:build unix

package viz_test

import (
	"bytes"
	"encoding/gob"
	"image/png"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"gobnn/bayes/compute/computetest"
	"gobnn/viz"

	"github.com/janpfeifer/gonb/gonbui/protocol"
)

const showCell = "GOBNN_VIZ_TEST_CELL"

// TestShowCell is the program of a notebook cell, which TestShowInNotebook runs.
func TestShowCell(t *testing.T) {
	if os.Getenv(showCell) == "" {
		t.Skip("only as the cell of TestShowInNotebook")
	}
	fig := computetest.Must(calibration())
	show := fig.Show
	if os.Getenv(showCell) == "file" {
		path := filepath.Join(t.TempDir(), "calibration.png")
		if err := fig.Save(path); err != nil {
			t.Fatal(err)
		}
		show = func() error { return viz.ShowFile(path) }
	}
	if err := show(); err != nil {
		t.Fatal(err)
	}
}

// TestShowInNotebook plays the kernel: it reads what a cell displays from one named pipe and acknowledges it through
// another.
func TestShowInNotebook(t *testing.T) {
	for _, what := range []string{"figure", "file"} {
		t.Run(what, func(t *testing.T) { showInNotebook(t, what) })
	}
}

func showInNotebook(t *testing.T, what string) {
	folder := t.TempDir()
	pipes := make([]*os.File, 2)
	cell := exec.Command(os.Args[0], "-test.run", "^TestShowCell$")
	cell.Env = append(os.Environ(), showCell+"="+what)
	for i, name := range []string{protocol.GONB_PIPE_ENV, protocol.GONB_PIPE_BACK_ENV} {
		path := filepath.Join(folder, name)
		if err := syscall.Mkfifo(path, 0o600); err != nil {
			t.Fatal(err)
		}
		var err error
		// Open for both directions, so that opening does not wait for the cell.
		if pipes[i], err = os.OpenFile(path, os.O_RDWR, 0); err != nil {
			t.Fatal(err)
		}
		defer pipes[i].Close()
		cell.Env = append(cell.Env, name+"="+path)
	}

	received := make(chan *protocol.DisplayData, 8)
	go func() {
		decoder, encoder := gob.NewDecoder(pipes[0]), gob.NewEncoder(pipes[1])
		for {
			message := new(protocol.DisplayData)
			if decoder.Decode(message) != nil {
				return
			}
			received <- message
			if sync, ok := message.Data[protocol.MIMECommValue].(protocol.CommValue); ok {
				if encoder.Encode(&protocol.CommValue{Address: protocol.GonbuiSyncAckAddress, Value: sync.Value}) != nil {
					return
				}
			}
		}
	}()
	var output bytes.Buffer
	cell.Stdout, cell.Stderr = &output, &output
	if err := cell.Start(); err != nil {
		t.Fatal(err)
	}
	timer := time.AfterFunc(20*time.Second, func() { _ = cell.Process.Kill() })
	defer timer.Stop()
	if err := cell.Wait(); err != nil {
		t.Fatalf("the cell failed: %v\n%s", err, output.String())
	}
	select {
	case message := <-received:
		data, ok := message.Data[protocol.MIMEImagePNG].([]byte)
		if !ok {
			t.Fatalf("the first message has no PNG: %v", message.Data)
		}
		img := computetest.Must(png.Decode(bytes.NewReader(data)))
		size, ok := message.Metadata["image/png"].(map[string]int)
		if b := img.Bounds(); !ok || 2*size["width"] != b.Dx() || 2*size["height"] != b.Dy() {
			t.Errorf("PNG of %v is shown at %v: want half its pixels", b.Size(), message.Metadata)
		}
	default:
		t.Fatal("the cell displayed nothing")
	}
}
