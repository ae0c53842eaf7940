// Package pictures reads sets of pictures. A row is a picture, row of pixels by row of pixels from the top left, with
// the channels of a pixel as neighbours: feature (y*Width + x)*Channels + channel, as nn.CNN takes them. The features
// are dataset.Pixels, one byte each, named "row,column", or "row,column,red", "green" and "blue".
//
//	train, test, err := pictures.CIFAR10()
//
// # Which sets
//
//   - [FashionMNIST], 28 x 28 in grey, and [CIFAR10], 32 x 32 in colour: downloaded from their publishers on the first
//     call, 31 and 170 MB, and kept.
//   - [SVHN], 32 x 32 in colour, and [CelebA], of which the attributes alone are read, a table: their publishers allow
//     non-commercial use only, and you get the files yourself. The error of a first call says which and where to put
//     them.
//   - MNIST is in package mnist, without a download. [ReadIDX] reads your own files of its format.
//
// # Where the files are
//
// In a subfolder of the folder that the environment variable GOBNN_DATA names, if that is set and has the subfolder;
// else in the same subfolder of "data" in the project's cache ($GOBNN_CACHE, by default "gobnn" in the user's cache
// folder), where downloads go too. The subfolders are fashion-mnist, cifar-10-batches-bin, svhn and celeba. Every file
// is compared with the sha256 of its publisher's each time that it is read. SOURCES.md lists files, checksums and
// licences.
//
// # Transforms
//
// [Grey] makes one channel of three. [Rotated] is the rotation of MNIST-C, by an angle whose sign is random.
package pictures
