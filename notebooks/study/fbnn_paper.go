package study

import (
	"strconv"
	"strings"
)

// fbnnPrinted are tables A1 and A2 as they are printed, a line for each method: mean squared error, or accuracy in per
// cent; coverage probability in per cent, or ECE; seconds; effective sample size, least, median and most; least
// effective draws a second; speed-up.
var fbnnPrinted = map[string]string{
	"simulated regression": `
DNN: 0.71 - 3531 - - - - -
Ensemble-DNN: 0.74 91.3 14633 - - - - -
BNN-VI: 1.14 88.8 8408 - - - - -
BNN-Lasso: 0.98 87.4 6941 - - - - -
BNN-MC-Dropout: 0.83 93.4 2861 - - - - -
BNN-SGHMC: 0.79 91.6 41281 109 829 1642 0.002 1.00
BNN-SGHMC (first 200): 4.48 92.8 3970 21 66 162 0.005 2.01
SWAG: 0.73 90.0 13488 93 1163 1542 0.006 2.61
BNN-RNS-HMC: 1.62 87.5 6046 126 948 1510 0.021 7.89
BNN-pCN: 0.81 89.3 42523 107 844 1533 0.002 0.95
FBNN (pCN-SGHMC): 0.96 79.6 4512 132 1241 1615 0.029 11.08
FBNN (pCN-pCN): 0.86 85.2 4631 94 975 1621 0.020 7.69
FBNN (SGHMC-SGHMC): 0.82 90.1 4497 137 1236 1638 0.030 11.53
FBNN (SGHMC-pCN): 0.74 92.2 4312 186 912 1606 0.043 16.33`,
	"wine": `
DNN: 0.43 - 26 - - - - -
Ensemble-DNN: 0.41 47.4 137 - - - - -
BNN-VI: 0.66 39.5 28 - - - - -
BNN-Lasso: 0.63 40.9 42 - - - - -
BNN-MC-Dropout: 0.67 32.3 12 - - - - -
BNN-SGHMC: 0.53 51.3 505 111 837 1538 0.219 1.00
BNN-SGHMC (first 200): 2.75 54.6 61 13 111 150 0.213 0.91
SWAG: 0.53 48.2 97 98 1021 1489 1.010 4.39
BNN-RNS-HMC: 0.62 44.7 38 107 925 1520 2.815 12.24
BNN-pCN: 0.65 51.1 620 99 1003 1532 0.159 0.69
FBNN (pCN-SGHMC): 0.52 32.2 68 91 912 1533 1.338 5.95
FBNN (pCN-pCN): 0.65 24.5 67 105 1087 1540 1.567 6.86
FBNN (SGHMC-SGHMC): 0.50 40.0 70 77 806 1536 1.100 4.78
FBNN (SGHMC-pCN): 0.52 48.1 57 92 897 1536 1.614 7.33`,
	"boston": `
DNN: 3.21 - 14 - - - - -
Ensemble-DNN: 3.17 72.1 74 - - - - -
BNN-VI: 7.60 83.7 85 - - - - -
BNN-Lasso: 6.20 79.2 68 - - - - -
BNN-MC-Dropout: 10.12 81.2 91 - - - - -
BNN-SGHMC: 3.83 75.3 888 76 649 1536 0.085 1.00
BNN-SGHMC (first 200): 7.40 66.9 86 9 87 150 0.104 1.22
SWAG: 5.81 71.9 104 68 724 1532 0.653 7.22
BNN-RNS-HMC: 9.42 73.4 76 73 1032 1504 0.960 10.6
BNN-pCN: 3.25 79.3 901 76 649 1536 0.084 0.88
FBNN (pCN-SGHMC): 4.16 41.7 186 71 965 1543 0.381 4.22
FBNN (pCN-pCN): 3.81 47.1 186 80 966 1541 0.430 4.78
FBNN (SGHMC-SGHMC): 4.15 48.9 94 69 979 1542 0.734 8.22
FBNN (SGHMC-pCN): 3.82 81.1 91 93 938 1543 1.021 11.94`,
	"NACC": `
DNN: 0.49 - 326 - - - - -
Ensemble-DNN: 0.42 89.3 1597 - - - - -
BNN-VI: 0.53 87.6 341 - - - - -
BNN-Lasso: 0.52 83.5 561 - - - - -
BNN-MC-Dropout: 0.60 92.8 268 - - - - -
BNN-SGHMC: 0.49 91.6 6524 102 973 1376 0.015 1.00
BNN-SGHMC (first 200): 3.17 72.7 641 7 82 150 0.011 0.69
SWAG: 0.74 89.3 1214 106 1002 1542 0.087 5.58
BNN-RNS-HMC: 0.61 92.4 7324 96 892 1531 0.013 0.83
BNN-pCN: 0.51 89.9 6212 120 1092 1448 0.019 1.23
FBNN (pCN-SGHMC): 0.50 90.2 643 116 994 1504 0.180 11.53
FBNN (pCN-pCN): 0.56 91.4 682 108 998 1498 0.171 10.93
FBNN (SGHMC-SGHMC): 0.55 88.4 671 118 1012 1541 0.176 11.24
FBNN (SGHMC-pCN): 0.48 91.6 632 149 984 1497 0.218 13.97`,
	"YearPredictionMSD": `
DNN: 74.54 - 1569 - - - - -
Ensemble-DNN: 72.89 90.47 7929 - - - - -
BNN-VI: 78.21 88.43 2146 - - - - -
BNN-Lasso: 79.44 89.04 3243 - - - - -
BNN-MC-Dropout: 83.08 87.89 1287 - - - - -
BNN-SGHMC: 81.67 83.81 25533 122 1005 1540 0.004 1.00
BNN-SGHMC (first 200): 105.92 94.13 2613 7 84 149 0.002 0.56
SWAG: 93.87 86.33 3841 113 987 1537 0.029 7.35
BNN-RNS-HMC: 92.82 80.19 17289 109 925 1563 0.006 1.57
BNN-pCN: 82.45 85.74 25655 124 873 1631 0.004 1.20
FBNN (pCN-SGHMC): 74.92 88.73 2815 143 1049 1676 0.050 10.63
FBNN (pCN-pCN): 74.03 90.45 3046 138 992 1618 0.045 9.48
FBNN (SGHMC-SGHMC): 76.69 90.40 2974 146 973 1599 0.049 10.27
FBNN (SGHMC-pCN): 73.41 92.23 2724 156 934 1608 0.057 11.98`,
	"simulated classification": `
DNN: 96 - 4257 - - - - -
Ensemble-DNN: 97 0.382 17415 - - - - -
BNN-VI: 90 0.399 4275 - - - - -
BNN-Lasso: 92 0.363 3189 - - - - -
BNN-MC-Dropout: 87 0.277 2912 - - - - -
BNN-SGHMC: 95 0.471 43841 47 212 1459 0.001 1.00
BNN-SGHMC (first 200): 83 0.498 4218 21 59 156 0.004 4.64
SWAG: 81 0.482 4731 81 773 1368 0.017 15.97
BNN-RNS-HMC: 69 0.513 1309 135 1190 1493 0.103 96.20
BNN-pCN: 91 0.475 49774 36 207 1417 0.001 0.67
FBNN (pCN-SGHMC): 93 0.409 5179 134 959 1419 0.051 24.13
FBNN (pCN-pCN): 91 0.423 4858 146 921 1412 0.058 28.03
FBNN (SGHMC-SGHMC): 95 0.406 4517 149 891 1540 0.032 30.76
FBNN (SGHMC-pCN): 96 0.396 4489 154 911 1602 0.070 32.00`,
	"adult": `
DNN: 85 - 426 - - - - -
Ensemble-DNN: 84 0.556 2153 - - - - -
BNN-VI: 80 0.642 562 - - - - -
BNN-Lasso: 83 0.631 256 - - - - -
BNN-MC-Dropout: 82 0.540 187 - - - - -
BNN-SGHMC: 83 0.574 5979 16 202 1520 0.002 1.00
BNN-SGHMC (first 200): 78 0.594 581 1 41 148 0.002 0.95
SWAG: 79 0.668 1641 47 912 1532 0.028 10.70
BNN-RNS-HMC: 72 0.658 6110 89 960 1530 0.014 5.44
BNN-pCN: 83 0.616 6227 9 117 1518 0.001 0.54
FBNN (pCN-SGHMC): 82 0.580 642 87 892 1539 0.135 50.63
FBNN (pCN-pCN): 82 0.592 639 88 890 1540 0.137 51.46
FBNN (SGHMC-SGHMC): 83 0.583 612 68 941 1541 0.111 41.52
FBNN (SGHMC-pCN): 84 0.576 609 89 875 1539 0.146 54.91`,
	"NACC diagnosis": `
DNN: 82 - 51 - - - - -
Ensemble-DNN: 83 0.542 262 - - - - -
BNN-VI: 72 0.546 61 - - - - -
BNN-Lasso: 76 0.524 256 - - - - -
BNN-MC-Dropout: 76 0.429 12 - - - - -
BNN-SGHMC: 81 0.499 2736 81 588 1526 0.029 1.00
BNN-SGHMC (first 200): 69 0.523 282 8 84 149 0.028 0.96
SWAG: 81 0.508 312 72 913 1562 0.231 7.69
BNN-RNS-HMC: 58 0.521 293 84 915 1540 0.286 9.55
BNN-pCN: 73 0.469 2660 71 424 1534 0.026 0.90
FBNN (pCN-SGHMC): 76 0.568 277 76 947 1542 0.274 9.26
FBNN (pCN-pCN): 77 0.377 274 70 931 1542 0.255 8.33
FBNN (SGHMC-SGHMC): 80 0.448 278 81 973 1538 0.291 8.63
FBNN (SGHMC-pCN): 84 0.376 280 92 914 1535 0.328 11.09`,
	"MNIST": `
DNN: 92 - 231 - - - - -
Ensemble-DNN: 94 0.312 1129 - - - - -
BNN-VI: 86 0.417 273 - - - - -
BNN-Lasso: 87 0.445 184 - - - - -
BNN-MC-Dropout: 89 0.328 212 - - - - -
BNN-SGHMC: 90 0.280 8641 15 364 1456 0.001 1.00
BNN-SGHMC (first 200): 78 0.271 916 1 34 149 0.001 0.62
SWAG: 83 0.327 1294 15 431 1376 0.011 7.72
BNN-RNS-HMC: 69 0.349 4541 14 372 1394 0.003 2.05
BNN-pCN: 88 0.321 8912 17 398 1471 0.001 1.26
FBNN (pCN-SGHMC): 88 0.352 927 15 412 1383 0.016 10.78
FBNN (pCN-pCN): 90 0.312 931 16 393 1421 0.017 11.45
FBNN (SGHMC-SGHMC): 91 0.283 923 18 409 1461 0.019 13.01
FBNN (SGHMC-pCN): 94 0.241 914 23 474 1521 0.025 16.77`,
	"CelebA": `
DNN: 80 - 3689 - - - - -
Ensemble-DNN: 82 0.569 15445 - - - - -
BNN-VI: 80 0.622 1132 - - - - -
BNN-Lasso: 79 0.561 2159 - - - - -
BNN-MC-Dropout: 78 0.512 1641 - - - - -
BNN-SGHMC: 81 0.567 17234 19 383 1537 0.001 1.00
BNN-SGHMC (first 200): 69 0.642 1849 1 85 149 0.001 0.63
SWAG: 70 0.534 8913 85 1014 1467 0.009 8.65
BNN-RNS-HMC: 72 0.612 1835 72 951 1494 0.039 35.59
BNN-pCN: 76 0.529 19676 19 331 1538 0.001 0.95
FBNN (pCN-SGHMC): 80 0.565 1972 99 1155 1542 0.050 45.53
FBNN (pCN-pCN): 79 0.542 1951 116 1155 1542 0.059 53.93
FBNN (SGHMC-SGHMC): 81 0.568 1904 93 978 1544 0.048 44.30
FBNN (SGHMC-pCN): 85 0.493 1892 129 785 1517 0.068 61.84`,
	"SVHN": `
DNN: 96 - 3748 - - - - -
Ensemble-DNN: 97 0.382 17415 - - - - -
BNN-VI: 90 0.399 4275 - - - - -
BNN-Lasso: 92 0.363 3189 - - - - -
BNN-MC-Dropout: 87 0.277 2912 - - - - -
BNN-SGHMC: 91 0.221 18639 31 379 1528 0.001 1.00
BNN-SGHMC (first 200): 74 0.246 2515 5 67 262 0.001 1.19
SWAG: 83 0.282 6294 78 499 1383 0.012 7.45
BNN-RNS-HMC: 71 0.299 9083 19 410 1384 0.002 1.25
BNN-pCN: 93 0.275 17812 27 398 1317 0.001 0.91
FBNN (pCN-SGHMC): 93 0.263 1931 36 391 1403 0.018 11.21
FBNN (pCN-pCN): 91 0.318 1927 29 372 1280 0.015 9.04
FBNN (SGHMC-SGHMC): 96 0.248 1891 34 412 1464 0.017 10.81
FBNN (SGHMC-pCN): 96 0.223 1884 47 486 1533 0.024 14.99`,
}

// fbnnReported are the paper's numbers of a data set, by method and metric. Its FBNN is ours in paper mode, its
// coverage probability the coverage of f.
func fbnnReported(data string) map[string]map[string]Reported {
	out := map[string]map[string]Reported{}
	quality, certainty, whole := "MSE", "coverage of f", [2]float64{1, 100}
	if !fbnnSetOf(data).regression() {
		quality, certainty, whole = "accuracy", "ECE", [2]float64{100, 1}
	}
	metrics := []string{quality, certainty, "seconds of a fit", "ESS, least", "ESS, median", "ESS, most",
		essOfSeconds, speedUp}
	for _, line := range strings.Split(strings.TrimSpace(fbnnPrinted[strings.TrimSuffix(data, inBlocks)]), "\n") {
		method, numbers, found := strings.Cut(line, ": ")
		if !found {
			continue
		}
		if strings.HasPrefix(method, "FBNN") {
			method += inPaper
		}
		out[method] = map[string]Reported{}
		for k, text := range strings.Fields(numbers) {
			if v, err := strconv.ParseFloat(text, 64); err == nil { // "-" is none
				if k < len(whole) {
					v /= whole[k] // of a percentage
				}
				out[method][metrics[k]] = Reported{Value: v}
			}
		}
	}
	return out
}
