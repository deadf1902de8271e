"""A residual network with what scripts have around it: switches, meters, early stopping, checkpoints, rate finder."""
import copy
import os
import tempfile
import numpy as np
import torch
import torch.nn as nn
import torch.optim as optim
import torch.nn.functional as F
import torch.backends.cudnn as cudnn
from torch.optim.lr_scheduler import CosineAnnealingLR, ReduceLROnPlateau


class BasicBlock(nn.Module):
    expansion = 1

    def __init__(self, in_planes, planes, stride=1):
        super(BasicBlock, self).__init__()
        self.conv1 = nn.Conv2d(in_planes, planes, kernel_size=3, stride=stride, padding=1, bias=False)
        self.bn1 = nn.BatchNorm2d(planes)
        self.conv2 = nn.Conv2d(planes, planes, kernel_size=3, stride=1, padding=1, bias=False)
        self.bn2 = nn.BatchNorm2d(planes)
        self.shortcut = nn.Sequential()
        if stride != 1 or in_planes != self.expansion * planes:
            self.shortcut = nn.Sequential(
                nn.Conv2d(in_planes, self.expansion * planes, kernel_size=1, stride=stride, bias=False),
                nn.BatchNorm2d(self.expansion * planes)
            )

    def forward(self, x):
        out = F.relu(self.bn1(self.conv1(x)))
        out = self.bn2(self.conv2(out))
        out += self.shortcut(x)
        out = F.relu(out)
        return out


class ResNet(nn.Module):
    def __init__(self, block, num_blocks, num_classes=10, width=4):
        super(ResNet, self).__init__()
        self.in_planes = width
        self.conv1 = nn.Conv2d(3, width, kernel_size=3, stride=1, padding=1, bias=False)
        self.bn1 = nn.BatchNorm2d(width)
        self.layer1 = self._make_layer(block, width, num_blocks[0], stride=1)
        self.layer2 = self._make_layer(block, 2 * width, num_blocks[1], stride=2)
        self.layer3 = self._make_layer(block, 4 * width, num_blocks[2], stride=2)
        self.linear = nn.Linear(4 * width * block.expansion, num_classes)

    def _make_layer(self, block, planes, num_blocks, stride):
        strides = [stride] + [1] * (num_blocks - 1)
        layers = []
        for stride in strides:
            layers.append(block(self.in_planes, planes, stride))
            self.in_planes = planes * block.expansion
        return nn.Sequential(*layers)

    def forward(self, x):
        out = F.relu(self.bn1(self.conv1(x)))
        out = self.layer1(out)
        out = self.layer2(out)
        out = self.layer3(out)
        out = F.avg_pool2d(out, 4)
        out = out.view(out.size(0), -1)
        out = self.linear(out)
        return out


class AverageMeter(object):
    def __init__(self):
        self.reset()

    def reset(self):
        self.val = self.avg = self.sum = self.count = 0

    def update(self, val, n=1):
        self.val = val
        self.sum += val * n
        self.count += n
        self.avg = self.sum / self.count


def accuracy(output, target, topk=(1,)):
    with torch.no_grad():
        maxk = max(topk)
        batch_size = target.size(0)
        _, pred = output.topk(maxk, 1, True, True)
        pred = pred.t()
        correct = pred.eq(target.view(1, -1).expand_as(pred))
        res = []
        for k in topk:
            correct_k = correct[:k].reshape(-1).float().sum(0, keepdim=True)
            res.append(correct_k.mul_(100.0 / batch_size))
        return res


class EarlyStopping:
    def __init__(self, patience=7, delta=0.0, path='checkpoint.pt'):
        self.patience, self.delta, self.path = patience, delta, path
        self.counter, self.best_score, self.early_stop, self.val_loss_min = 0, None, False, np.inf

    def __call__(self, val_loss, model):
        score = -val_loss
        if self.best_score is None or score > self.best_score + self.delta:
            self.best_score = score
            torch.save(model.state_dict(), self.path)
            self.val_loss_min, self.counter = val_loss, 0
        else:
            self.counter += 1
            if self.counter >= self.patience:
                self.early_stop = True


def train_step_of(net, criterion, optimizer):
    def train_step(inputs, targets):
        optimizer.zero_grad()
        outputs = net(inputs)
        loss = criterion(outputs, targets)
        loss.backward()
        optimizer.step()
        return loss, outputs
    return train_step


def train(net, criterion, train_step, trainloader, device):
    net.train()
    losses, top1 = AverageMeter(), AverageMeter()
    correct = total = 0
    for batch_idx, (inputs, targets) in enumerate(trainloader):
        inputs, targets = inputs.to(device, non_blocking=True), targets.to(device, non_blocking=True)
        loss, outputs = train_step(inputs, targets)
        losses.update(loss.item(), inputs.size(0))
        acc1, acc5 = accuracy(outputs, targets, topk=(1, 5))
        top1.update(acc1[0].item(), inputs.size(0))
        _, predicted = outputs.max(dim=1)
        total += targets.size(0)
        correct += predicted.eq(targets).sum().item()
    return [losses.avg, top1.avg, 100. * correct / total]


def test(net, criterion, loader, device):
    net.eval()
    test_loss, correct = 0, 0
    with torch.no_grad():
        for inputs, targets in loader:
            inputs, targets = inputs.to(device), targets.to(device)
            outputs = net(inputs)
            test_loss += criterion(outputs, targets).item()
            pred = outputs.argmax(dim=1, keepdim=True)
            correct += pred.eq(targets.view_as(pred)).sum().item()
    return [test_loss, correct]


def find_rate(net, criterion, trainloader, compiled, device):
    saved = copy.deepcopy(net.state_dict())
    finder = optim.Adam(net.parameters(), lr=1e-5)
    sched = optim.lr_scheduler.ExponentialLR(finder, (1e-1 / 1e-5) ** (1 / 5))
    find = compiled(train_step_of(net, criterion, finder))
    net.train()
    best, smooth, out = float('inf'), 0., []
    for k in range(5):
        inputs, targets = (batch.to(device) for batch in trainloader[k % 2])
        smooth = 0.9 * smooth + 0.1 * find(inputs, targets)[0].item()
        sched.step()
        debiased = smooth / (1 - 0.9 ** (k + 1))
        best = min(best, debiased)
        out += [debiased, finder.param_groups[0]['lr']]
        if debiased > 4 * best:
            break
    net.load_state_dict(saved)
    return out


def main(fill, compiled):
    rng = np.random.default_rng(0)
    device = torch.device("cuda:0" if torch.cuda.is_available() else "cpu")
    cudnn.benchmark = True
    cudnn.deterministic = True
    net = ResNet(BasicBlock, [1, 1, 1]).to(device)
    fill(net)
    criterion = nn.CrossEntropyLoss().to(device)
    optimizer = optim.SGD(net.parameters(), lr=0.05, momentum=0.9, weight_decay=5e-4)
    scheduler = CosineAnnealingLR(optimizer, T_max=10)
    X = torch.from_numpy(rng.normal(size=(16, 3, 16, 16)).astype(np.float32))
    Y = torch.from_numpy(rng.integers(0, 10, 16))
    trainloader = [(X[k:k + 8], Y[k:k + 8]) for k in range(0, 16, 8)]
    train_step, out = compiled(train_step_of(net, criterion, optimizer)), []
    with tempfile.TemporaryDirectory() as d:
        stopper = EarlyStopping(patience=2, path=os.path.join(d, 'checkpoint.pt'))
        for epoch in range(2):
            out += train(net, criterion, train_step, trainloader, device)
            scheduler.step()
            out += test(net, criterion, trainloader, device)
            stopper(out[-2], net)
            if stopper.early_stop:
                break
        net.load_state_dict(torch.load(os.path.join(d, 'checkpoint.pt'), map_location=device))
        state = {'net': net.state_dict(), 'acc': 3.5, 'optimizer': optimizer.state_dict(), 'scheduler': scheduler.state_dict()}
        torch.save(state, os.path.join(d, 'ckpt.pth'))
        checkpoint = torch.load(os.path.join(d, 'ckpt.pth'))
    net.load_state_dict(checkpoint['net'])
    optimizer.load_state_dict(checkpoint['optimizer'])
    scheduler.load_state_dict(checkpoint['scheduler'])
    out += [checkpoint['acc'], scheduler.get_last_lr()[0]] + find_rate(net, criterion, trainloader, compiled, device)
    plateau = ReduceLROnPlateau(optimizer, 'min', patience=1, factor=0.1)
    for _ in range(4):
        plateau.step(1.0)
    return out + [optimizer.param_groups[0]['lr']]
