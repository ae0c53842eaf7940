package main

import (
	"context"
	"errors"
)

func runVerb(ctx context.Context, root string, args []string) error {
	return errors.New("run: not yet")
}
