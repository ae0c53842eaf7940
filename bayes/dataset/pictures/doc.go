// Package pictures reads sets of pictures. A row is a picture, row of pixels by row of pixels from the top left, with
// the channels of a pixel as neighbours: feature (y*Width + x)*Channels + channel, as nn.CNN takes them. The features
// are dataset.Pixels, one byte each.
package pictures
